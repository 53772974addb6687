"""The life of one editorial job: from a URL to a saved story."""

from enum import StrEnum

from nexus.states.machine import Edge, Machine


class JobStatus(StrEnum):
    QUEUED = "QUEUED"  #: created, and nothing is fetched yet
    FETCHING = "FETCHING"  #: the page is being fetched
    EXTRACTING = "EXTRACTING"  #: title and text are being extracted
    EXTRACTED = "EXTRACTED"  #: old rows say this for READY_TO_GENERATE
    READY_TO_GENERATE = "READY_TO_GENERATE"  #: it has a title and a text
    GENERATING = "GENERATING"  #: the draft is being written
    SAVED = "SAVED"  #: the story is saved
    FAILED = "FAILED"  #: stopped, with a message that begins with the step


S = JobStatus
#: In work, or left to a worker.
HELD = frozenset({S.FETCHING, S.EXTRACTING, S.GENERATING})
EXTRACTED_ON = frozenset({S.EXTRACTED, S.READY_TO_GENERATE, S.GENERATING, S.SAVED})

# fmt: off
#                                verb                from                                                                                       to                   skip when already in
FETCH            = Edge("fetch",            {S.QUEUED, S.FETCHING},                                                                     S.FETCHING)
FETCHED          = Edge("fetched",          {S.FETCHING},                                                                               S.EXTRACTING)
CLAIM_EXTRACTION = Edge("claim_extraction", {S.FETCHING, S.EXTRACTING},                                                                 S.EXTRACTING,        EXTRACTED_ON)
EXTRACTED        = Edge("extracted",        {S.EXTRACTING},                                                                             S.READY_TO_GENERATE, EXTRACTED_ON)
ADOPT            = Edge("adopt",            {S.QUEUED},                                                                                 S.READY_TO_GENERATE)
GENERATE         = Edge("generate",         {S.EXTRACTED, S.READY_TO_GENERATE, S.GENERATING},                                           S.GENERATING)
SAVED            = Edge("saved",            {S.GENERATING},                                                                             S.SAVED,             {S.SAVED})
FAIL             = Edge("fail",             {S.QUEUED, S.FETCHING, S.EXTRACTING, S.EXTRACTED, S.READY_TO_GENERATE, S.GENERATING}, S.FAILED,            {S.FAILED, S.SAVED})
MANUAL_ENTRY     = Edge("manual_entry",     {S.QUEUED, S.EXTRACTING, S.FAILED},                                                         S.EXTRACTING)
REGENERATE       = Edge("regenerate",       {S.SAVED, S.FAILED},                                                                        S.READY_TO_GENERATE)
RETRY            = Edge("retry",            {S.FAILED},                                                                                 S.QUEUED)
# fmt: on

JOB = Machine(
    "job",
    JobStatus,
    JobStatus.QUEUED,
    (
        FETCH,
        FETCHED,
        CLAIM_EXTRACTION,
        EXTRACTED,
        ADOPT,
        GENERATE,
        SAVED,
        FAIL,
        MANUAL_ENTRY,
        REGENERATE,
        RETRY,
    ),
    retired=frozenset({JobStatus.EXTRACTED}),
)
