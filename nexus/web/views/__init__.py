"""What a page shows: rows turned into words, and templates into HTML."""
