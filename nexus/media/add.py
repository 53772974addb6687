"""Taking in a URL: one media for all users, in the viewer's library, in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID, uuid4

from sqlalchemy import bindparam

from nexus import urls
from nexus.db.moves import MEDIA_ROWS, log_created
from nexus.db.session import Row, Session
from nexus.db.tables import media
from nexus.db.upserts import upsert
from nexus.errors import InvalidKind
from nexus.libraries import access, quota
from nexus.libraries.catalog import hold
from nexus.libraries.quota import Limits, Operation
from nexus.media.lifecycle import reset_failed
from nexus.states.media import URL_KINDS, Kind, Status

_COLUMNS = (
    "id",
    "kind",
    "run_after",
    "requested_url",
    "canonical_url",
    "provider",
    "provider_id",
    "external_playback_url",
    "created_by_user_id",
    "created_at",
    "updated_at",
)
# Creates the row or locks the one that is there, in one step: nobody can delete it in between.
_GET_OR_CREATE = upsert(
    media,
    {media.c[name]: bindparam(name) for name in _COLUMNS},
    lambda new: new.on_conflict_do_update(
        index_elements=[media.c.kind, media.c.canonical_url],
        index_where=media.c.canonical_url.is_not(None),
        set_={"kind": new.excluded.kind},
    ).returning(media.c.id, media.c.processing_status, media.c.run_after),
)

_SOURCES: dict[Kind, Callable[[str], urls.Source]] = {Kind.WEB_ARTICLE: urls.article, Kind.VIDEO: urls.video}


@dataclass(frozen=True)
class Added:
    media_id: UUID
    kind: Kind
    created: bool
    #: Whether there is work to announce.
    due: bool


def add_url(session: Session, viewer: UUID, kind: str, url: str, limits: Limits) -> Added:
    """Get or create, in the viewer's default library; a failed one is retried, which costs nothing.

    Raises InvalidKind, InvalidUrl, RateLimited.
    """
    chosen = _url_kind(kind)
    source = _SOURCES[chosen](url)
    library = access.ensure_user(session, viewer)
    row, created = _get_or_create(session, viewer, chosen, source)
    hold(session, library, row.id)
    if created:
        quota.require_quota(session, limits, viewer, Operation.INGEST_URLS, 1)
        quota.record_usage(session, viewer, Operation.INGEST_URLS, 1, row.id)
    elif Status(row.processing_status) is Status.FAILED:
        row = reset_failed(session, row.id, viewer)
    due = Status(row.processing_status) is Status.PENDING and row.run_after <= session.now
    return Added(row.id, chosen, created, due)


def hold_article(session: Session, viewer: UUID, url: str) -> Row:
    """The media of an address that was taken in otherwise, in the viewer's default library; nothing is counted."""
    library = access.ensure_user(session, viewer)
    row, _ = _get_or_create(session, viewer, Kind.WEB_ARTICLE, urls.article(url))
    hold(session, library, row.id)
    return row


def _url_kind(kind: str) -> Kind:
    if kind not in URL_KINDS:
        raise InvalidKind
    return Kind(kind)


def _get_or_create(session: Session, viewer: UUID, kind: Kind, source: urls.Source) -> tuple[Row, bool]:
    media_id = uuid4()
    (row,) = session.all(_GET_OR_CREATE, **_new_row(session, media_id, viewer, kind, source))
    created = row.id == media_id
    if created:
        log_created(session, MEDIA_ROWS, media_id, actor=str(viewer))
    return row, created


def _new_row(
    session: Session, media_id: UUID, viewer: UUID, kind: Kind, source: urls.Source
) -> dict[str, object]:
    return {
        "id": media_id,
        "kind": kind.value,
        "run_after": session.now,
        "requested_url": source.requested_url,
        "canonical_url": source.canonical_url,
        "provider": source.provider,
        "provider_id": source.provider_id,
        "external_playback_url": source.external_playback_url,
        "created_by_user_id": viewer,
        "created_at": session.now,
        "updated_at": session.now,
    }
