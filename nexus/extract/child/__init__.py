"""The processes in which readers run, and the way they are spoken to.

    sandbox.py         which process reads what, what its end means         in the worker
    child/outside.py   holds the nursery and the parsers by their sockets   in the worker
    child/nursery.py   imports the readers once, and forks the parsers      in the nursery
    child/parser.py    runs one reader after the other                      in a parser
    child/jail.py      what a parser may not do                             in a parser
    child/wire.py      data, framed                                         everywhere

The nursery is started with an empty environment and has one thread, so that it may fork: a new parser has every
reader imported and costs milliseconds. It ends when its socket does, and the parsers end with it; so nothing is left
when the worker is killed. Here nothing is imported that the parsers don't need.
"""
