"""The life of one story: from a draft to publication or the bin."""

from enum import StrEnum

from nexus.states.machine import Edge, Machine


class StoryStatus(StrEnum):
    DRAFT = "draft"  #: can be edited
    REVIEW = "review"  #: waits for a review
    PUBLISHED = "published"  #: in the feed
    ARCHIVED = "archived"  #: was published, and is no longer
    DISCARDED = "discarded"  #: not wanted


S = StoryStatus

# fmt: off
#                    verb       from                           to            skip when already in
SUBMIT  = Edge("submit",  {S.DRAFT},                     S.REVIEW,     {S.REVIEW})
REWRITE = Edge("rewrite", {S.REVIEW},                    S.DRAFT,      {S.DRAFT})
PUBLISH = Edge("publish", {S.DRAFT, S.REVIEW},           S.PUBLISHED,  {S.PUBLISHED})
CORRECT = Edge("correct", {S.PUBLISHED},                 S.PUBLISHED)
ARCHIVE = Edge("archive", {S.PUBLISHED},                 S.ARCHIVED,   {S.ARCHIVED})
DISCARD = Edge("discard", {S.DRAFT, S.REVIEW},           S.DISCARDED,  {S.DISCARDED})
RESTORE = Edge("restore", {S.DISCARDED, S.ARCHIVED},     S.DRAFT,      {S.DRAFT})
# fmt: on

STORY = Machine(
    "story", StoryStatus, StoryStatus.DRAFT, (SUBMIT, REWRITE, PUBLISH, CORRECT, ARCHIVE, DISCARD, RESTORE)
)
