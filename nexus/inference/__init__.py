"""How a model is asked: in a process of its own, with an empty environment and limits, or on a server.

    host.py       holds a process by its socket, and starts another if it ended   in Nexus
    child.py      gives up rights, loads a model, and answers                     in the process
    frames.py     the bytes of a message on the socket                            on both sides
    server.py     requests to a server that speaks OpenAI's protocol
    transport.py  the connection to a server, with one deadline and a longest answer

Nothing is imported here that the processes don't need.
"""
