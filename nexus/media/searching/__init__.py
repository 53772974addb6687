"""Search in items: how their texts are indexed, and what a viewer finds. The room `search` finds chunks; this one knows
who may read which, and shows them as items.

chunking, indexing      texts as chunks, and what is still to be indexed
embedding, vectors      vectors as work, and as rows: which set of them is searched
finding, found_order    a search, a page at a time, and its cursor
asking                  what a question means, as a vector
narrowing, own_titles   the texts that filters leave, and titles that a viewer gave
excerpts                the passages that are shown
similar                 more like this
"""
