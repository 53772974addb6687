"""Media: brought into any state along legal edges, with everything that is stored about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import bindparam, insert, select

from nexus.app import App
from nexus.db.moves import MEDIA_ROWS, log_created
from nexus.db.session import Sessions, Statement
from nexus.db.tables import fragments, history, library_media, media, media_file
from nexus.extract import Extraction, Source
from nexus.libraries import access, catalog, members
from nexus.libraries.access import Role
from nexus.media.add import add_url, hold_media
from nexus.media.lifecycle import (
    mark_embedded,
    mark_failed,
    mark_ready_for_reading,
    worker_start_attempt,
    worker_start_embedding,
)
from nexus.media.searching.indexing import unembedded_texts
from nexus.media.searching.vectors import Made, write_vectors
from nexus.media.texts import Found
from nexus.states.media import MEDIA, Kind, MediaStatus, Stage

TEXTS = ("the first piece", "the second piece")

_FILE_COLUMNS = (
    "id",
    "kind",
    "run_after",
    "file_sha256",
    "created_by_user_id",
    "created_at",
    "updated_at",
)
_NEW_FILE = Statement(insert(media).values({name: bindparam(name) for name in _FILE_COLUMNS}))
_STORED = Statement(insert(media_file).values({c: bindparam(c.name) for c in media_file.c}))
_FRAGMENTS = Statement(
    select(fragments.c.text)
    .where(fragments.c.media_id == bindparam("media_id"))
    .order_by(fragments.c.revision, fragments.c.position)
)
_FILES = Statement(select(media_file).where(media_file.c.media_id == bindparam("media_id")))
_HOLDERS = Statement(
    select(library_media.c.library_id)
    .where(library_media.c.media_id == bindparam("media_id"))
    .order_by(library_media.c.library_id)
)
_ROW = Statement(select(media).where(media.c.id == bindparam("media_id")))
_HISTORY = Statement(
    select(history).where(history.c.subject_id == bindparam("media_id")).order_by(history.c.id)
)


@dataclass(frozen=True)
class MediaRecord:
    """Everything that is stored about one media."""

    row: Any
    history: list[Any]
    texts: list[str]
    files: list[Any]
    holders: list[UUID]


def everything_of(sessions: Sessions, media_id: UUID) -> MediaRecord:
    with sessions.read() as session:
        texts = [row.text for row in session.all(_FRAGMENTS, media_id=media_id)]
        files = session.all(_FILES, media_id=media_id)
        holders = [row.library_id for row in session.all(_HOLDERS, media_id=media_id)]
    return MediaRecord(row_of(sessions, media_id), history_of(sessions, media_id), texts, files, holders)


def status_of(sessions: Sessions, media_id: UUID) -> MediaStatus:
    return MediaStatus(row_of(sessions, media_id).processing_status)


def events_of(sessions: Sessions, media_id: UUID) -> list[str]:
    return [entry.event for entry in history_of(sessions, media_id)]


def new_file(
    app: App, user: UUID, sha256: str | None, *, stored: bool = False, kind: Kind = Kind.PDF
) -> UUID:
    """An upload before its bytes arrived (no sha256), or after."""
    media_id = uuid4()
    with app.sessions.begin() as session:
        library = access.ensure_user(session, user)
        now = session.now
        times = {"run_after": now, "created_at": now, "updated_at": now}
        session.run(
            _NEW_FILE, id=media_id, kind=kind.value, file_sha256=sha256, created_by_user_id=user, **times
        )
        log_created(session, MEDIA_ROWS, media_id, actor=str(user))
        hold_media(session, library, media_id)
        if stored:
            path = app.files.path(media_id, kind)
            app.files.storage.put(path, [b"pdf"], "application/pdf")
            session.run(
                _STORED,
                media_id=media_id,
                revision=0,
                storage_path=path,
                content_type="application/pdf",
                size_bytes=3,
                filename="a file.pdf",
            )
    return media_id


def start_extraction(app: App, media_id: UUID) -> int:
    """Start extraction: pending → extracting. Returns the attempt."""
    with app.sessions.begin() as session:
        claim = worker_start_attempt(session, media_id)
    assert claim is not None
    return int(claim.processing_attempts)


def publish_text(app: App, media_id: UUID, attempt: int, texts: tuple[str, ...] = TEXTS) -> bool:
    with app.sessions.begin() as session:
        return mark_ready_for_reading(
            session, media_id, attempt, Found(Extraction.plain("A title", *texts), "tests")
        )


MODEL = "a model of the tests"


def start_embedding(app: App, media_id: UUID) -> int:
    with app.sessions.begin() as session:
        claim = worker_start_embedding(session, media_id)
    assert claim is not None
    return int(claim.processing_attempts)


def finish_embedding(app: App, media_id: UUID, attempt: int) -> bool:
    """With vectors of a model that nobody asks."""
    with app.sessions.begin() as session:
        lacking = unembedded_texts(session, media_id, MODEL)
        made = Made(MODEL, {one.id: bytes(4) for one in lacking}, 0)
        done = mark_embedded(session, media_id, attempt)
        if done:
            write_vectors(session, media_id, made)
        return done


def fail_media(
    app: App,
    media_id: UUID,
    attempt: int | None,
    stage: Stage = Stage.EXTRACT,
    code: str = "E_EXTRACTION_FAILED",
    message: str = "No text was found.",
) -> bool:
    with app.sessions.begin() as session:
        return mark_failed(session, media_id, stage, code, message, attempt)


def walk_media_to(app: App, media_id: UUID, status: MediaStatus, stage: Stage = Stage.EXTRACT) -> int:
    """Walk a pending media to a state, or to a failure at this stage. Returns its attempt."""
    if status is MediaStatus.PENDING:
        return 0
    attempt = start_extraction(app, media_id)
    if status is MediaStatus.FAILED:
        fail_media(app, media_id, attempt, stage)
    if status in {MediaStatus.EXTRACTING, MediaStatus.FAILED}:
        return attempt
    publish_text(app, media_id, attempt)
    if status is MediaStatus.READY_FOR_READING:
        return attempt
    attempt = start_embedding(app, media_id)
    if status is MediaStatus.READY:
        finish_embedding(app, media_id, attempt)
    return attempt


def share_media(app: App, owner: UUID, media_id: UUID, *guests: tuple[UUID, Role]) -> UUID:
    """Make a library of the owner that holds the media, with these guests."""
    with app.sessions.begin() as session:
        library = catalog.create_library(session, owner, "Shared")
        catalog.add_media(session, library, media_id, owner)
        for guest, role in guests:
            access.ensure_user(session, guest)
            members.join(session, library, guest, role)
    return library


def good_extractor(source: Source) -> Extraction:
    """An extractor that always finds its text."""
    return Extraction.plain("A title", *TEXTS)


def new_media(app: App, user: UUID | None = None, url: str | None = None, kind: str = "web_article") -> UUID:
    """A pending media in the default library of a user."""
    address = url or f"https://example.com/{uuid4().hex}"
    with app.sessions.begin() as session:
        return add_url(session, user or uuid4(), kind, address, {}).media_id


def row_of(sessions: Sessions, media_id: UUID) -> Any:
    with sessions.read() as session:
        return session.first(_ROW, media_id=media_id)


def history_of(sessions: Sessions, media_id: UUID) -> list[Any]:
    with sessions.read() as session:
        return session.all(_HISTORY, media_id=media_id)


def assert_media_replays(app: App, media_id: UUID) -> None:
    """Check that its history is one walk along the machine's edges, to its present state."""
    row, entries = row_of(app.sessions, media_id), history_of(app.sessions, media_id)
    steps = {edge.verb: edge for edge in MEDIA}
    state = None
    for entry in entries:
        assert entry.from_status == state, [tuple(entry) for entry in entries]
        if entry.event != "create":
            assert MediaStatus(entry.from_status) in steps[entry.event].sources
            assert steps[entry.event].target == entry.to_status
        state = entry.to_status
    assert row.processing_status == state
    claims = [entry for entry in entries if entry.event in {"start", "embed"}]
    assert [entry.attempt for entry in claims] == list(range(1, row.processing_attempts + 1))
