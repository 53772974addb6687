"""How text is found: by its words, by what it means, and by both at once."""
