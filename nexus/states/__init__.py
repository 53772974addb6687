"""What may happen: the three machines as data, and what a media offers in each state."""
