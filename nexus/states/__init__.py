"""What may happen: four machines as tables of edges, and what a viewer can do with a media in each state."""
