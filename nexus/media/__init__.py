"""Things to read: added by address or as a file, extracted once for everybody, refreshed, read.

add, submit, enqueue an address becomes an item, and a worker is told
addresses            other addresses of an item
uploads, inspect     a file becomes an item, once it is checked
lifecycle            the edges that an item walks
runner, extraction   claim an item, extract its text, write it
workbench            what an extractor works with
texts, revisions     a text that was found, and the rows that it becomes
pictures             those of a text are fetched after it, each as work of its own
illustrations        a text with pictures that come from Nexus
versions             which revision a library holds, how it takes another, and a viewer's own text
differences          two revisions side by side
refresh              a source is read again, for one user
files                where the bytes are, and when they may go
items, queries       what a viewer sees of items
wanted, listing      which items are listed, and in which order
shelving             what one person notes about an item
bulk, failures       many items at once, and those that failed by their error
shares               how many bytes of the store a user may fill
reader, fragments    what a viewer sees of a text
history, changes     what a viewer may know of what happened to an item
waits                what an item waits for

recordings           videos and episodes: heard, transcribed, and read beside their sound
feeds                subscriptions, and what they bring
searching            how texts are indexed, and what a viewer finds
"""
