# ruff: noqa: S608 every name comes from this file
"""The index of words, which each database keeps in its own way, and the triggers that keep it in step with the chunks.

SQLite has an FTS5 table that reads its content from the chunks. PostgreSQL has a generated column, and counts of words
for ranking, which upkeep makes again from time to time. Vectors go with the last chunk of their text.
"""

from __future__ import annotations

from nexus.db.chunks import chunks, vectors

INDEX = "chunk_words"
#: Chunks are indexed as `search.analysis` makes them: nothing is left for the tokenizer but to find the spaces.
TOKENIZER = "unicode61 remove_diacritics 0 categories ''L* N* Co Mn Mc''"
#: SQLite merges what it has written of the index when there is so much of one size. With half as many, which is its
#: default, texts take a fifth longer to index, and searches are as fast.
MERGED_TOGETHER = 8
TRIGGERS = ("chunks_indexed", "chunks_gone")
POSTGRES_TRIGGERS = ("chunks_gone",)
#: Tables, columns and indexes that the metadata does not describe.
OWN_NAMES = {
    "sqlite": {INDEX, *(f"{INDEX}_{part}" for part in ("config", "data", "docsize", "idx"))},
    "postgresql": {"tsv", "ix_chunks_tsv", "word_counts", "word_totals"},
}

_GONE = (
    f"DELETE FROM {vectors.name} WHERE media_id = OLD.media_id AND chunk_id = OLD.id"
    f" AND NOT EXISTS (SELECT 1 FROM {chunks.name} c WHERE c.media_id = OLD.media_id AND c.id = OLD.id)"
)


def create_word_index(dialect: str) -> list[str]:
    """Return the statements that install the index on the tables `chunks` and `vectors`."""
    return [*_SQLITE_TABLE, *_SQLITE_TRIGGERS] if dialect == "sqlite" else [*_POSTGRES, *_POSTGRES_TRIGGER]


def drop_word_index(dialect: str) -> list[str]:
    """Return the statements that remove it."""
    triggers = drop_word_triggers(dialect)
    if dialect == "sqlite":
        return [*triggers, f"DROP TABLE {INDEX}"]
    return [
        *triggers,
        "DROP INDEX ix_chunks_tsv",
        "ALTER TABLE chunks DROP COLUMN tsv",
        "DROP TABLE word_counts",
        "DROP TABLE word_totals",
    ]


def create_word_triggers(dialect: str) -> list[str]:
    """Return the statements that install the triggers alone."""
    return _SQLITE_TRIGGERS if dialect == "sqlite" else _POSTGRES_TRIGGER


def drop_word_triggers(dialect: str) -> list[str]:
    if dialect == "sqlite":
        return [f"DROP TRIGGER {name}" for name in TRIGGERS]
    return ["DROP TRIGGER chunks_gone ON chunks", "DROP FUNCTION chunks_gone()"]


_SQLITE_TABLE = [
    f"CREATE VIRTUAL TABLE {INDEX} USING fts5(head, words, content='chunks', content_rowid='key', "
    f"tokenize='{TOKENIZER}')",
    f"INSERT INTO {INDEX}({INDEX}, rank) VALUES ('automerge', {MERGED_TOGETHER})",
]
_SQLITE_TRIGGERS = [
    f"CREATE TRIGGER chunks_indexed AFTER INSERT ON chunks BEGIN "
    f"INSERT INTO {INDEX}(rowid, head, words) VALUES (NEW.key, NEW.head, NEW.words); END",
    f"CREATE TRIGGER chunks_gone AFTER DELETE ON chunks BEGIN "
    f"INSERT INTO {INDEX}({INDEX}, rowid, head, words) VALUES ('delete', OLD.key, OLD.head, OLD.words); "
    f"{_GONE}; END",
]
_POSTGRES = [
    "ALTER TABLE chunks ADD COLUMN tsv tsvector GENERATED ALWAYS AS "
    "(setweight(to_tsvector('simple', head), 'A') || to_tsvector('simple', words)) STORED",
    "CREATE INDEX ix_chunks_tsv ON chunks USING gin (tsv)",
    "CREATE TABLE word_counts (word text PRIMARY KEY, chunks bigint NOT NULL)",
    "CREATE TABLE word_totals (chunks bigint NOT NULL, length bigint NOT NULL)",
]
_POSTGRES_TRIGGER = [
    f"CREATE FUNCTION chunks_gone() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {_GONE}; RETURN NULL; END $$",
    "CREATE TRIGGER chunks_gone AFTER DELETE ON chunks FOR EACH ROW EXECUTE FUNCTION chunks_gone()",
]
