"""The processes that models run in: one for each model, with an empty environment, limits, and one socket.

    host.py     holds a process by its socket, and starts another if it ended   in Nexus
    child.py    gives up rights, loads a model, and answers                     in the process
    frames.py   the bytes of a message on the socket                            on both sides

Nothing is imported here that the processes don't need.
"""
