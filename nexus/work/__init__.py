"""How work survives: one claim, lease, fence, retry decision, fairness and sweep for every kind of work.

A subject room registers a `Handler`: how to claim, what to do, how to settle. This room does not know what the work is.
"""
