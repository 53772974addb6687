# ruff: noqa: S608 every name comes from this file
"""What lists are narrowed by, as one number on each holding: marks, status and kind.

Each index that a library is listed by begins with it, so that a list walks only what it shows, however much it leaves
out. Triggers keep it up to date, for every writer. docs/decisions/0038-shelves.md says more.
"""

from __future__ import annotations

from typing import NamedTuple

from nexus.states.media import KINDS_OF_FILES, Kind, MediaStatus

#: What the owner of a library has noted about an item. Other members' marks are looked up on their shelves.
MARKS = {"read_at": 1, "archived_at": 2, "favourite_at": 4}
#: These numbers are stored: never change one.
STATUSES = {
    MediaStatus.PENDING: 0,
    MediaStatus.EXTRACTING: 1,
    MediaStatus.READY_FOR_READING: 2,
    MediaStatus.EMBEDDING: 3,
    MediaStatus.READY: 4,
    MediaStatus.FAILED: 5,
}
KINDS = {
    Kind.WEB_ARTICLE: 0,
    Kind.VIDEO: 1,
    Kind.PODCAST_EPISODE: 2,
    Kind.PDF: 3,
    Kind.EPUB: 4,
    Kind.TEXT: 5,
}
OF_STATUS, OF_KIND = 8, 64
#: The facet of nothing.
NONE = -1
_STATUS_OF = {number: status for status, number in STATUSES.items()}
_KIND_OF = {number: kind for kind, number in KINDS.items()}


class Facet(NamedTuple):
    """One of these numbers, taken apart."""

    #: The columns of `MARKS` that are set.
    marks: frozenset[str]
    status: MediaStatus
    #: What people call it: an address that answered with a PDF is one.
    kind: Kind


def facet_of(number: int) -> Facet:
    marks = frozenset(name for name, bit in MARKS.items() if number & bit)
    return Facet(marks, _STATUS_OF[number % OF_KIND // OF_STATUS], _KIND_OF[number // OF_KIND])


def facets_of(status: MediaStatus) -> list[int]:
    """Return every facet of what has a status."""
    marks = range(2 ** len(MARKS))
    return [kind * OF_KIND + STATUSES[status] * OF_STATUS + mark for kind in KINDS.values() for mark in marks]


def _cases(column: str, numbers: dict[str, int]) -> str:
    cases = " ".join(f"WHEN '{value}' THEN {number}" for value, number in numbers.items())
    return f"CASE {column} {cases} END"


_STATUS = _cases("m.processing_status", {one.value: number * OF_STATUS for one, number in STATUSES.items()})
_KIND = _cases("m.kind", {one.value: number * OF_KIND for one, number in KINDS.items()})
_ANSWERED = _cases("f.content_type", {name: KINDS[kind] * OF_KIND for name, kind in KINDS_OF_FILES.items()})
_NOTED = " + ".join(f"CASE WHEN s.{name} IS NULL THEN 0 ELSE {bit} END" for name, bit in MARKS.items())
#: The number of a row of library_media. 0 while its item is being deleted.
FACET_SQL = (
    f"coalesce((SELECT {_STATUS} + coalesce((SELECT min({_ANSWERED}) FROM media_file f WHERE f.media_id = m.id "
    f"AND f.revision = coalesce(library_media.revision, m.revision)), {_KIND}) "
    "FROM media m WHERE m.id = library_media.media_id), 0) + "
    f"coalesce((SELECT {_NOTED} FROM shelf s JOIN libraries l ON l.owner_user_id = s.user_id "
    "WHERE l.id = library_media.library_id AND s.media_id = library_media.media_id), 0)"
)
_WRITE = f"UPDATE library_media SET facet = {FACET_SQL} WHERE media_id = "
_HOLDING = f"{_WRITE}NEW.media_id AND library_id = NEW.library_id AND facet <> {FACET_SQL}"
_OWNED = "AND library_id IN (SELECT id FROM libraries WHERE owner_user_id = {row}.user_id)"
_CHANGED_MARKS = " OR ".join(f"(OLD.{name} IS NULL) <> (NEW.{name} IS NULL)" for name in MARKS)
_TYPES = ", ".join(f"'{name}'" for name in KINDS_OF_FILES)


class _FacetTrigger(NamedTuple):
    name: str
    event: str
    when: str | None
    does: str


_FACET_TRIGGERS = (
    _FacetTrigger("library_media_facet_insert", "INSERT ON library_media", None, _HOLDING),
    _FacetTrigger("library_media_facet_move", "UPDATE OF revision ON library_media", None, _HOLDING),
    _FacetTrigger(
        "media_facet",
        "UPDATE OF processing_status, revision ON media",
        "OLD.processing_status <> NEW.processing_status OR OLD.revision <> NEW.revision",
        f"{_WRITE}NEW.id",
    ),
    _FacetTrigger(
        "media_file_facet_insert",
        "INSERT ON media_file",
        f"NEW.content_type IN ({_TYPES})",
        f"{_WRITE}NEW.media_id",
    ),
    _FacetTrigger(
        "media_file_facet_delete",
        "DELETE ON media_file",
        f"OLD.content_type IN ({_TYPES})",
        f"{_WRITE}OLD.media_id",
    ),
    _FacetTrigger(
        "shelf_facet_insert", "INSERT ON shelf", None, f"{_WRITE}NEW.media_id {_OWNED.format(row='NEW')}"
    ),
    _FacetTrigger(
        "shelf_facet_update",
        f"UPDATE OF {', '.join(MARKS)} ON shelf",
        _CHANGED_MARKS,
        f"{_WRITE}NEW.media_id {_OWNED.format(row='NEW')}",
    ),
    _FacetTrigger(
        "shelf_facet_delete", "DELETE ON shelf", None, f"{_WRITE}OLD.media_id {_OWNED.format(row='OLD')}"
    ),
)


def create_facet_triggers(dialect: str) -> list[str]:
    """Return the statements that install them."""
    made = []
    for trigger in _FACET_TRIGGERS:
        begins = f"CREATE TRIGGER {trigger.name} AFTER {trigger.event} "
        if dialect == "sqlite":
            when = f"WHEN {trigger.when} " if trigger.when else ""
            made.append(f"{begins}{when}BEGIN {trigger.does}; END")
            continue
        when = f"WHEN ({trigger.when}) " if trigger.when else ""
        made += [
            f"CREATE FUNCTION {trigger.name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {trigger.does}; "
            "RETURN NULL; END $$",
            f"{begins}FOR EACH ROW {when}EXECUTE FUNCTION {trigger.name}()",
        ]
    return made


def drop_facet_triggers(dialect: str) -> list[str]:
    """Return the statements that remove them."""
    if dialect == "sqlite":
        return [f"DROP TRIGGER IF EXISTS {trigger.name}" for trigger in _FACET_TRIGGERS]
    return [
        statement
        for trigger in _FACET_TRIGGERS
        for statement in (
            f"DROP TRIGGER IF EXISTS {trigger.name} ON {trigger.event.rpartition(' ')[2]}",
            f"DROP FUNCTION IF EXISTS {trigger.name}()",
        )
    ]
