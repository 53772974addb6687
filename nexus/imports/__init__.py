"""Many files at once: an import can be paused, and ends with all of its files in the library or none.

service     what a door holds: a user's batches, their one attempt, and the thread that works on it
staging     which files, in which order, into which library
attempts    the attempt's state, whether it was asked to stop, and which of its results still count
workspaces  where the attempt keeps what it has done so far
runner      checks, parses, splits and commits, and stops when it is asked to
checking    what is wrong with a file, and what the user already has of it
extracting  the text of a file, by the extractor of its kind
committing  files into storage and rows into the database, all or none
progress    how far each file is
"""
