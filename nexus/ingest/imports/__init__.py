"""One button for a folder of books: an attempt that can be paused, and ends with everything in the library or nothing.

attempts    what state the attempt is in, and which of its results still count
flags       whether it has been asked to stop
workspaces  where it keeps what it has done so far
"""
