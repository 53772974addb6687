"""The life of one import attempt, which is kept in memory and can be paused."""

from enum import StrEnum

from nexus.states.machine import Edge, Machine


class AttemptStatus(StrEnum):
    IDLE = "IDLE"  #: there is no attempt; one can be started
    RUNNING = "RUNNING"  #: the runner is working
    STOPPING = "STOPPING"  #: the runner was asked to stop and has not stopped yet
    PAUSED = "PAUSED"  #: stopped, with work that can be resumed
    COMPLETE = "COMPLETE"  #: the last attempt finished


class Phase(StrEnum):
    NOT_STARTED = "not_started"  #: there is no attempt
    PREFLIGHT = "preflight"  #: the files are being checked
    PARSING = "parsing"  #: text is being extracted from each file
    SPLITTING = "splitting"  #: text is being split into chunks
    ATOMIC_TEXT_COMMIT = "atomic_text_commit"  #: everything is being written in one transaction
    TEXT_COMMITTED = "text_committed"  #: text and chunks are in the database


S = AttemptStatus

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
    AttemptStatus,
    AttemptStatus.IDLE,
    (START, ADVANCE, STOP, PAUSED, STOPPED, RESUME, DISCARD, COMPLETE, CLOSE),
)
