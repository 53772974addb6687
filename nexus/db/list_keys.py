"""What a library's list is sorted by, beside the time of addition: copied into its rows, so that an index has it.

The statements that let a library hold an item or another revision copy the keys themselves. A text that is written is
copied by a trigger, because on PostgreSQL it is written by one statement, whose snapshot may lack a library that got
the item a moment before. docs/decisions/0038-shelves.md says more.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Integer, func, literal_column

from nexus.db.tables import SortKey, revisions

#: No more of a published date is a key: it is what a page says, and an index can't hold a novel.
LONGEST_DATE = 32
TRIGGER = "revisions_list_keys"
_SPAN = (literal_column("1", Integer), literal_column(str(LONGEST_DATE), Integer))
_NOTHING = literal_column("''", SortKey)
#: The keys of a revision, by the column that they are copied to.
TEXT_KEYS: dict[str, ColumnElement[Any]] = {
    "title_key": revisions.c.title_key,
    "published": func.substr(func.coalesce(revisions.c.published, _NOTHING), *_SPAN, type_=SortKey),
    "words": revisions.c.words,
}
#: The same in a query that joins a revision if there is one.
KEYS_IF_THERE: dict[str, ColumnElement[Any]] = {
    **{name: func.coalesce(TEXT_KEYS[name], _NOTHING) for name in ("title_key", "published")},
    "words": func.coalesce(revisions.c.words, literal_column("0", Integer)),
}
_UPDATE = (
    "UPDATE library_media SET title_key = NEW.title_key, words = NEW.words, "
    f"published = substr(coalesce(NEW.published, ''), 1, {LONGEST_DATE}) "
    "WHERE media_id = NEW.media_id "
    "AND coalesce(revision, (SELECT revision FROM media WHERE id = NEW.media_id)) = NEW.number"
)


def create_list_trigger(dialect: str) -> list[str]:
    """Return the statements that install it."""
    if dialect == "sqlite":
        return [f"CREATE TRIGGER {TRIGGER} AFTER INSERT ON revisions BEGIN {_UPDATE}; END"]
    return [
        f"CREATE FUNCTION {TRIGGER}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {_UPDATE}; RETURN NULL; END $$",
        f"CREATE TRIGGER {TRIGGER} AFTER INSERT ON revisions FOR EACH ROW EXECUTE FUNCTION {TRIGGER}()",
    ]


def drop_list_trigger(dialect: str) -> list[str]:
    """Return the statements that remove it."""
    if dialect == "sqlite":
        return [f"DROP TRIGGER IF EXISTS {TRIGGER}"]
    return [f"DROP TRIGGER IF EXISTS {TRIGGER} ON revisions", f"DROP FUNCTION IF EXISTS {TRIGGER}()"]
