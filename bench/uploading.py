"""How fast a large file is taken in through local storage, and how much memory the server needs for it."""
