"""Things to read: taken in by address or as a file, read once for everybody, refreshed, looked up.

add, submit     an address becomes an item
uploads, settle a file becomes an item, once it is checked
lifecycle       the edges an item walks
runner          claim, extract, write the result
documents       the text as rows
files           where the bytes are, and when they may go
refresh         reading an item again
queries         what a viewer sees
"""
