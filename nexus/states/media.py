"""The life of one media: something to read or watch."""

from enum import StrEnum

from nexus.states.machine import Edge, Machine


class Kind(StrEnum):
    """What a media is."""

    WEB_ARTICLE = "web_article"  #: a page, by its URL
    VIDEO = "video"  #: a video, by its URL; its text is the transcript
    PODCAST_EPISODE = "podcast_episode"  #: an episode of a feed; its text is the transcript
    PDF = "pdf"  #: an uploaded file
    EPUB = "epub"  #: an uploaded file
    TEXT = "text"  #: an uploaded file: plain text or Markdown


#: Kinds that are files: nothing can be extracted before their bytes are stored and hashed.
FILE_KINDS = frozenset({Kind.PDF, Kind.EPUB, Kind.TEXT})
#: The types of files that an address may answer with, and what people call it then.
KINDS_OF_FILES = {"application/pdf": Kind.PDF, "application/epub+zip": Kind.EPUB}
#: Kinds that are added by URL.
URL_KINDS = frozenset({Kind.WEB_ARTICLE, Kind.VIDEO})


class MediaStatus(StrEnum):
    PENDING = "pending"  #: waits for a worker
    EXTRACTING = "extracting"  #: a worker holds it, under a lease
    READY_FOR_READING = "ready_for_reading"  #: has its text
    EMBEDDING = "embedding"  #: readable; a worker holds it to make its vectors, under a lease
    READY = "ready"  #: readable and embedded
    FAILED = "failed"  #: stopped, with a stage, a code and a message


class Stage(StrEnum):
    """Where a failure happened. It decides what a retry has to undo."""

    UPLOAD = "upload"  #: the file did not arrive whole
    EXTRACT = "extract"  #: fetching or parsing
    TRANSCRIBE = "transcribe"  #: getting a transcript
    EMBED = "embed"  #: making vectors; the text stays readable
    OTHER = "other"  #: none of these


#: What people read instead of a status, on the pages and in the terminal.
STATE_WORDS = {
    MediaStatus.PENDING: "Queued",
    MediaStatus.EXTRACTING: "Extracting",
    MediaStatus.READY_FOR_READING: "Ready",
    MediaStatus.EMBEDDING: "Ready, indexing",
    MediaStatus.READY: "Ready",
    MediaStatus.FAILED: "Failed",
}
#: What people read about a failure, by its stage.
STAGE_WORDS = {
    Stage.UPLOAD: "Couldn't receive the file",
    Stage.EXTRACT: "Couldn't extract the text",
    Stage.TRANSCRIBE: "Couldn't get the transcript",
    Stage.EMBED: "Couldn't prepare it for search",
    Stage.OTHER: "Failed",
}


class Origin(StrEnum):
    """Where a text comes from."""

    EXTRACTED = "extracted"  #: from the item's address or file; everybody who holds the item may read it
    ENTERED = "entered"  #: from a user, who pasted it or whose browser sent it; nobody else may read it


S = MediaStatus
PUBLISHED = frozenset({S.READY_FOR_READING, S.EMBEDDING, S.READY})
HELD = frozenset({S.EXTRACTING, S.EMBEDDING})

# fmt: off
#                                verb                 from                                     to                   skip when already in
START             = Edge("start",             {S.PENDING},                              S.EXTRACTING,        {S.EXTRACTING} | PUBLISHED)
READABLE          = Edge("readable",          {S.EXTRACTING},                           S.READY_FOR_READING, PUBLISHED)
EMBED             = Edge("embed",             {S.READY_FOR_READING},                    S.EMBEDDING,         {S.EMBEDDING, S.READY})
EMBEDDED          = Edge("embedded",          {S.EMBEDDING},                            S.READY,             {S.READY})
RELEASE           = Edge("release",           {S.EXTRACTING},                           S.PENDING,           {S.PENDING})
RELEASE_EMBEDDING = Edge("release_embedding", {S.EMBEDDING},                            S.READY_FOR_READING, {S.READY_FOR_READING})
FAIL              = Edge("fail",              {S.PENDING, S.EXTRACTING, S.EMBEDDING},   S.FAILED,            {S.FAILED, S.READY_FOR_READING, S.READY})
RETRY             = Edge("retry",             {S.FAILED},                               S.PENDING)
RETRY_EMBEDDING   = Edge("retry_embedding",   {S.FAILED},                               S.READY_FOR_READING, where=("failure_stage", "embed"))
# fmt: on

MEDIA = Machine(
    "media",
    MediaStatus,
    MediaStatus.PENDING,
    (START, READABLE, EMBED, EMBEDDED, RELEASE, RELEASE_EMBEDDING, FAIL, RETRY, RETRY_EMBEDDING),
)
