"""What a database finds by itself, without Nexus: any of the words, in its own order."""

from __future__ import annotations

import re
import sqlite3

import psycopg

from bench.judged import AMONG, JudgedSet
from bench.places import Place, dsn

Orders = dict[str, list[str]]


def plain_fts5(_: Place, judged: JudgedSet) -> Orders:
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE VIRTUAL TABLE plain USING fts5(key UNINDEXED, text, tokenize='porter')")
        connection.executemany("INSERT INTO plain VALUES (?, ?)", judged.texts.items())
        asked = "SELECT key FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT ?"
        return {
            key: [row[0] for row in connection.execute(asked, (_any_of(typed), AMONG))]
            for key, typed in judged.questions.items()
        }


def _any_of(typed: str) -> str:
    return " OR ".join(f'"{word}"' for word in re.findall(r"\w+", typed))


def ts_rank_cd(place: Place, judged: JudgedSet) -> Orders:
    asked = (
        "SELECT key FROM plain, CAST(replace(plainto_tsquery('english', %s)::text, '&', '|') AS tsquery) AS asked "
        "WHERE words @@ asked ORDER BY ts_rank_cd(words, asked) DESC, key LIMIT %s"
    )
    with psycopg.connect(dsn(place.empty("postgresql"))) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE plain (key text, words tsvector)")
        cursor.executemany(
            "INSERT INTO plain VALUES (%s, to_tsvector('english', %s))", list(judged.texts.items())
        )
        return {
            key: [row[0] for row in cursor.execute(asked, (typed, AMONG))]
            for key, typed in judged.questions.items()
        }
