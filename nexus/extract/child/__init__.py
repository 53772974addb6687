"""The processes that readers run in, and how they are spoken to.

    sandbox.py               picks the process for a document, explains failures  in the worker
    child/handles.py         holds the nursery and the parsers by their sockets   in the worker
    child/nursery.py         imports the readers once, and forks the parsers      in the nursery
    child/parser.py          runs one reader on one document                      in a parser
    child/jail.py            what a parser may not do                             in nursery and parser
    child/kernel.py          how Linux is told so                                 in nursery and parser
    child/seccomp_calls.py   the system calls that a parser may make
    child/seccomp_filter.py  the same as a program for the kernel                 in the nursery
    child/messages.py        what they say to each other                          everywhere
    child/frames.py          the bytes of a message on a socket                   everywhere

The nursery starts with an empty environment and has one thread, so that it can fork: a new parser has every reader
imported already and costs milliseconds. If the kernel allows, the nursery leaves the machine's network, processes and
mounts first; then its own parent waits for it outside. The nursery ends when its socket closes, and the parsers end
with it, so nothing is left when the worker is killed. Nothing is imported here that the parsers don't need.
"""
