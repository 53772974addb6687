"""The life of one import attempt, in memory: pausable, and honest about stopping."""

from enum import StrEnum

from nexus.states.machine import Edge, Machine


class Status(StrEnum):
    IDLE = "IDLE"  #: no attempt; ready for a fresh start
    RUNNING = "RUNNING"  #: the runner works
    STOPPING = "STOPPING"  #: a stop is requested and not finished yet
    PAUSED = "PAUSED"  #: stopped, with staged work that can be resumed
    COMPLETE = "COMPLETE"  #: the last attempt finished; distinct from never started


class Phase(StrEnum):
    NOT_STARTED = "not_started"  #: no attempt
    PREFLIGHT = "preflight"  #: the sources are checked
    PARSING = "parsing"  #: text is taken from each source
    SPLITTING = "splitting"  #: text is cut into chunks
    ATOMIC_TEXT_COMMIT = "atomic_text_commit"  #: everything is written in one transaction
    TEXT_COMMITTED = "text_committed"  #: text and chunks are durable


S = Status

# fmt: off
#                    verb          from                                to           skip when already in
START    = Edge("start",    {S.IDLE, S.COMPLETE},               S.RUNNING)
ADVANCE  = Edge("advance",  {S.RUNNING},                        S.RUNNING)
STOP     = Edge("stop",     {S.RUNNING},                        S.STOPPING,  {S.STOPPING})
PAUSED   = Edge("paused",   {S.STOPPING},                       S.PAUSED)
STOPPED  = Edge("stopped",  {S.STOPPING},                       S.IDLE)
RESUME   = Edge("resume",   {S.PAUSED},                         S.RUNNING)
DISCARD  = Edge("discard",  {S.PAUSED},                         S.IDLE)
COMPLETE = Edge("complete", {S.RUNNING},                        S.COMPLETE)
CLOSE    = Edge("close",    {S.RUNNING, S.STOPPING, S.PAUSED},  S.STOPPING,  {S.IDLE, S.COMPLETE})
# fmt: on

ATTEMPT = Machine(
    "import attempt",
    Status,
    Status.IDLE,
    (START, ADVANCE, STOP, PAUSED, STOPPED, RESUME, DISCARD, COMPLETE, CLOSE),
)
