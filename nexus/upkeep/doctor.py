"""Checks whether the database keeps its promises, and whether everything that Nexus needs works. Changes nothing.

A check that fails is a problem; if a worker or time will fix it, it is a note.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Integer, Text, bindparam, column, func, make_url, select, text, union_all

from nexus.db import migrate, triggers
from nexus.db.editorial import UNBEGUN, jobs
from nexus.db.moves import SUBJECTS
from nexus.db.session import Query, Sessions
from nexus.db.tables import WAITING, media
from nexus.extract import Extractor
from nexus.libraries import audit
from nexus.media.files import Files
from nexus.settings import SECRETS, Settings
from nexus.states.media import Kind
from nexus.storage import StorageError
from nexus.upkeep import clean, counts
from nexus.upkeep.embedding_model import check_embedding_model
from nexus.upkeep.findings import CheckVerdict, Finding
from nexus.upkeep.promises import PROMISES, Promise, offenders
from nexus.upkeep.security_settings import check_secrets_file
from nexus.upkeep.speech import check_speech
from nexus.upkeep.word_index import check_word_index

#: How many offenders are listed.
NAMED = 5
#: Expired leases and due work become a note when nobody has taken them up for this many sweeps, and at least this long.
SWEEPS = 6
PATIENCE = timedelta(minutes=1)
#: Workers delete old entries of the audit log every NEXUS_UPKEEP_HOURS.
AUDIT_GRACE = timedelta(days=2)
REDIS_SECONDS = 3
SHORT = 32
DATABASE_ADVICE = "Check the database; restore it from a backup if it is damaged."
STORE_ADVICE = (
    "Check that the file store is running, and that Nexus can list, read, write and delete files there."
)


@dataclass(frozen=True)
class Patient:
    """What is examined."""

    settings: Settings
    sessions: Sessions
    extractors: Mapping[Kind, Extractor]
    files: Files

    def late(self, now: datetime) -> datetime:
        """Work that was due before this has been forgotten."""
        return now - max(PATIENCE, timedelta(seconds=self.settings.sweep_seconds) * SWEEPS)


Check = Callable[[Patient], Finding]


def examine(patient: Patient) -> list[Finding]:
    """Run every check that makes sense: without a database none of rows, without a store none of files."""
    findings = [
        check(patient) for check in (_secrets, _secrets_file, _redis, _meaning, _speech, _store, _reachable)
    ]
    store, database = findings[-2:]
    if database.verdict is CheckVerdict.OK:
        findings.append(_guarded("database.migrated", _migrated, patient))
    if findings[-1].verdict is CheckVerdict.OK:
        findings += _rows(patient, FILE_CHECKS if store.verdict is CheckVerdict.OK else [])
    return findings


def is_healthy(findings: Iterable[Finding]) -> bool:
    return all(finding.verdict is not CheckVerdict.PROBLEM for finding in findings)


def _rows(patient: Patient, of_files: Sequence[tuple[str, Check]]) -> list[Finding]:
    named: list[tuple[str, Check]] = [
        ("database.triggers", _triggers),
        ("database.integrity", _integrity),
        ("search.index", lambda patient: check_word_index(patient.sessions)),
        *((promise.name, _asked(promise)) for promise in PROMISES),
        ("work.leases", _expired),
        ("work.due", _overdue),
        ("work.processors", _unprocessed),
        ("audit.retention", _audit_log),
        *of_files,
    ]
    return [_guarded(name, check, patient) for name, check in named]


def _guarded(name: str, check: Check, patient: Patient) -> Finding:
    """A check that raises is a problem too."""
    try:
        return check(patient)
    except Exception as error:
        says = f"This could not be checked: {_first_line(error)}."
        advice = STORE_ADVICE if isinstance(error, StorageError | OSError) else DATABASE_ADVICE
        return Finding(name, CheckVerdict.PROBLEM, says, advice)


def _ok(name: str, says: str) -> Finding:
    return Finding(name, CheckVerdict.OK, says)


def _problem(name: str, says: str, advice: str, found: Sequence[str] = ()) -> Finding:
    return Finding(name, CheckVerdict.PROBLEM, says, advice, len(found), tuple(found[:NAMED]))


def _note(name: str, says: str, advice: str, total: int = 0, found: Sequence[str] = ()) -> Finding:
    return Finding(name, CheckVerdict.NOTE, says, advice, total, tuple(found[:NAMED]))


# The store


def _missing_files(patient: Patient) -> Finding:
    name = "files.missing"
    missing = [str(media_id) for media_id in clean.missing_objects(patient.sessions, patient.files)]
    if missing:
        return _problem(
            name,
            "Files or pictures are missing from the store.",
            "Restore them from a backup, or delete these items.",
            missing,
        )
    return _ok(name, "Every file and picture is in the store.")


def _orphaned_files(patient: Patient) -> Finding:
    name = "files.orphaned"
    orphans = [stored.path for stored in clean.orphaned_objects(patient.sessions, patient.files)]
    if orphans:
        says = "There are files in the store that belong to no item."
        return _note(
            name, says, "Look at them, then remove them: nexus clean --remove", len(orphans), orphans
        )
    return _ok(name, "Every file in the store belongs to an item.")


FILE_CHECKS: list[tuple[str, Check]] = [
    ("files.missing", _missing_files),
    ("files.orphaned", _orphaned_files),
]


# What Nexus needs around it


def _store(patient: Patient) -> Finding:
    name = "files.store"
    trouble = patient.files.storage.trouble()
    return _problem(name, *trouble) if trouble else _ok(name, "The file store answers.")


def _secrets(patient: Patient) -> Finding:
    chosen, name = patient.settings, "settings.secrets"
    wanted = [secret for secret in SECRETS if not (chosen.jwks_url and secret.startswith("jwt"))]
    missing = [f"NEXUS_{secret.upper()}" for secret in wanted if not getattr(chosen, secret)]
    if missing:
        return _problem(
            name,
            f"Missing: {', '.join(missing)}.",
            "Set them in the environment or in .env in the data folder.",
            missing,
        )
    short = [f"NEXUS_{secret.upper()}" for secret in wanted if len(getattr(chosen, secret)) < SHORT]
    if short:
        advice = f"Use at least {SHORT} random characters."
        return _note(name, f"Short enough to guess: {', '.join(short)}.", advice, len(short), short)
    return _ok(name, "All secrets are set.")


def _secrets_file(patient: Patient) -> Finding:
    return check_secrets_file("settings.secrets_file", patient.settings.data_dir / "secrets.json")


def _meaning(patient: Patient) -> Finding:
    return check_embedding_model(patient.settings)


def _speech(patient: Patient) -> Finding:
    return check_speech(patient.settings)


def _redis(patient: Patient) -> Finding:
    name = "queue.reachable"
    if patient.settings.queue != "celery":
        return _ok(name, "The queue needs no server.")
    try:
        limits = {"socket_connect_timeout": REDIS_SECONDS, "socket_timeout": REDIS_SECONDS}
        redis = importlib.import_module("redis")  # slow to import, and most installations do without
        with redis.Redis.from_url(patient.settings.redis_url, **limits) as client:
            client.ping()
    except Exception as error:
        says = f"Redis can't be reached, so workers are not told about new work: {_first_line(error)}."
        return _problem(name, says, "Start it, or check NEXUS_REDIS_URL.")
    return _ok(name, "Redis answers.")


def _reachable(patient: Patient) -> Finding:
    name = "database.reachable"
    missing = missing_file(patient.settings.database)
    if missing is not None:
        return _problem(name, f"There is no database at {missing}.", "Create it with: nexus db upgrade")
    try:
        with patient.sessions.read() as session:
            counts.is_alive(session)
    except Exception as error:
        says = f"The database can't be reached: {_first_line(error)}."
        return _problem(name, says, "Start it, or check NEXUS_DATABASE_URL and the data folder.")
    return _ok(name, "The database answers.")


def missing_file(url: str) -> Path | None:
    """Return the path of the SQLite file if it does not exist. Ask before connecting, which would create it."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        return None
    path = Path(parsed.database)
    return None if path.exists() else path


def _migrated(patient: Patient) -> Finding:
    name = "database.migrated"
    current, head = migrate.schema_version(patient.settings.database), migrate.head()
    if current == head:
        return _ok(name, f"The database is at revision {head}.")
    says = f"The database is at revision {current or 'base'}, but this Nexus needs {head}."
    return _problem(name, says, "Run: nexus db upgrade")


# The database as a whole


class _Damage(NamedTuple):
    says: str


class _Dangling(NamedTuple):
    child: str
    row: int | None
    parent: str
    number: int


class _Unchecked(NamedTuple):
    conname: str


_INTEGRITY = Query(text("PRAGMA integrity_check(5)").columns(column("says", Text)), _Damage)
_DANGLING = Query(
    text("PRAGMA foreign_key_check").columns(
        column("child", Text), column("row", Integer), column("parent", Text), column("number", Integer)
    ),
    _Dangling,
)
_UNCHECKED = Query(
    text("SELECT conname FROM pg_constraint WHERE NOT convalidated").columns(column("conname", Text)),
    _Unchecked,
)


def _integrity(patient: Patient) -> Finding:
    name = "database.integrity"
    with patient.sessions.read() as session:
        if session.is_sqlite:
            broken = [row.says for row in session.all(_INTEGRITY) if row.says != "ok"]
            dangling = session.all(_DANGLING)
            broken += [f"{row.child} refers to a missing row of {row.parent}" for row in dangling]
        else:
            broken = [f"{row.conname} was never checked" for row in session.all(_UNCHECKED)]
    if broken:
        return _problem(
            name, "The database is damaged.", "Stop Nexus and restore the database from a backup.", broken
        )
    return _ok(name, "The database is undamaged, and every reference leads somewhere.")


def _triggers(patient: Patient) -> Finding:
    name = "database.triggers"
    with patient.sessions.begin() as session:
        differing = [guard for subject in SUBJECTS for guard in triggers.differing(session, subject)]
    if differing:
        says = "Triggers that guard a status column are missing or outdated."
        return _problem(
            name, says, "Restore the database from a backup, or create its triggers again.", differing
        )
    return _ok(name, "The triggers that guard status columns are in place.")


# Promises about the rows


def _asked(promise: Promise) -> Check:
    def check(patient: Patient) -> Finding:
        with patient.sessions.read() as session:
            rows = session.all(promise.offenders, most=NAMED)
        if not rows:
            return _ok(promise.name, promise.holds)
        ids = tuple(str(row.id) for row in rows)
        return Finding(promise.name, CheckVerdict.PROBLEM, promise.broken, promise.advice, rows[0].total, ids)

    return check


# Is anybody working?

_LATE = bindparam("late", type_=media.c.run_after.type)
_EXPIRED = offenders(
    union_all(*(select(held.c.id).where(held.c.lease_expires_at < _LATE) for held in (media, jobs)))
)
_OVERDUE = offenders(
    select(media.c.id).where(text(WAITING), media.c.kind == bindparam("kind"), media.c.run_after < _LATE)
)
_UNBEGUN = offenders(select(jobs.c.id).where(text(UNBEGUN), jobs.c.updated_at < _LATE))


class _WaitingKind(NamedTuple):
    kind: Kind
    total: int


_WAITING_KINDS = Query(
    select(media.c.kind, func.count().label("total")).where(text(WAITING)).group_by(media.c.kind),
    _WaitingKind,
)
START_ONE = "Is a worker running? Start one with: nexus serve or nexus worker"


def _expired(patient: Patient) -> Finding:
    name = "work.leases"
    with patient.sessions.read() as session:
        rows = session.all(_EXPIRED, late=patient.late(session.now), most=NAMED)
    if not rows:
        return _ok(name, "No worker has left work behind.")
    says = "A worker left items or jobs behind, and no other worker has continued them."
    return _note(name, says, START_ONE, rows[0].total, [str(row.id) for row in rows])


def _overdue(patient: Patient) -> Finding:
    name = "work.due"
    with patient.sessions.read() as session:
        late = patient.late(session.now)
        waiting = [
            *(
                session.all(_OVERDUE, kind=kind.value, late=late, most=NAMED)
                for kind in sorted(patient.extractors)
            ),
            session.all(_UNBEGUN, late=late, most=NAMED),
        ]
    found = [row for rows in waiting for row in rows]
    if not found:
        return _ok(name, "Nothing has been waiting long for a worker.")
    total = sum(rows[0].total for rows in waiting if rows)
    says = "Items or jobs have been waiting long for a worker."
    return _note(name, says, START_ONE, total, [str(row.id) for row in found])


def _unprocessed(patient: Patient) -> Finding:
    name = "work.processors"
    with patient.sessions.read() as session:
        rows = session.all(_WAITING_KINDS)
    waiting = {row.kind: row.total for row in rows if row.kind not in patient.extractors}
    if not waiting:
        return _ok(name, "Everything that is waiting has a processor.")
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(waiting.items()))
    says = f"These are waiting, and this command has no processor for them: {kinds}."
    return _note(
        name,
        says,
        "A server or worker that has one will process them; see NEXUS_PLUGINS.",
        sum(waiting.values()),
    )


def _audit_log(patient: Patient) -> Finding:
    name, days = "audit.retention", patient.settings.audit_days
    with patient.sessions.read() as session:
        found = audit.extent(session)
        late = session.now - timedelta(days=days) - AUDIT_GRACE
    if found.oldest is None or found.oldest >= late:
        return _ok(name, f"No entry of the audit log is older than {days} days. Entries: {found.entries}.")
    says = f"The audit log has entries that are older than {days} days (NEXUS_AUDIT_DAYS)."
    return _note(name, says, START_ONE, found.entries)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
