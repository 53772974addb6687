"""The processes that readers run in, and how they are spoken to.

    sandbox.py          picks the process for a document, explains failures  in the worker
    child/handles.py    holds the nursery and the parsers by their sockets   in the worker
    child/nursery.py    imports the readers once, and forks the parsers      in the nursery
    child/parser.py     runs one reader after another                        in a parser
    child/jail.py       what a parser may not do                             in a parser
    child/messages.py   what they say to each other                          everywhere
    child/frames.py     the bytes of a message on a socket                   everywhere

The nursery starts with an empty environment and has one thread, so that it can fork: a new parser has every reader
imported already and costs milliseconds. The nursery ends when its socket closes, and the parsers end with it, so
nothing is left when the worker is killed. Nothing is imported here that the parsers don't need.
"""
