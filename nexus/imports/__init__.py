"""One button for a folder of books: an attempt that can be paused, and ends with everything in the library or nothing.

service     what a door holds: the batches of a user, his one attempt, and the thread that works on it
staging     which files, in which order, into which library
attempts    what state the attempt is in, and which of its results still count
flags       whether it has been asked to stop
workspaces  where it keeps what it has done so far
runner      checks, parses, splits and commits, and stops where it is asked to
checking    what is wrong with a file, and what the user has of it
committing  files into the store and rows into the database, all or none
progress    how far each file is
leaving     what would be lost by going away
"""
