"""Adding a URL: one item for all users, put into the viewer's library in the same transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import and_, bindparam, literal_column, or_, select

from nexus import urls
from nexus.db.moves import MEDIA_ROWS, log_created
from nexus.db.rows import MediaRow
from nexus.db.session import Query, Session
from nexus.db.tables import media
from nexus.db.upserts import upsert_returning
from nexus.errors import InvalidKind, InvalidUrl
from nexus.libraries import access, quota
from nexus.libraries.catalog import hold_media
from nexus.libraries.quota import Allowances, Operation
from nexus.media.addresses import Known, find_by_other_address
from nexus.media.lifecycle import reset_failed
from nexus.states.media import URL_KINDS, Kind, MediaStatus

_COLUMNS = (
    "id",
    "kind",
    "run_after",
    "requested_url",
    "canonical_url",
    "provider",
    "provider_id",
    "external_playback_url",
    "host",
    "created_by_user_id",
    "created_at",
    "updated_at",
    "request_id",
)


# Creates the row or locks the existing one, in one step: nobody can delete it in between.
_GET_OR_CREATE = upsert_returning(
    Known,
    media,
    {media.c[name]: bindparam(name) for name in _COLUMNS},
    lambda new: new.on_conflict_do_update(
        index_elements=[media.c.kind, media.c.canonical_url],
        index_where=media.c.canonical_url.is_not(None),
        set_={"kind": new.excluded.kind},
    ).returning(media.c.id, media.c.processing_status, media.c.run_after),
)

#: A video is the same by its address or by its provider's id for it. Of two rows, the one with the id is meant.
_FIND_VIDEO = Query(
    select(media.c.id, media.c.processing_status, media.c.run_after)
    .where(
        media.c.kind == bindparam("kind"),
        or_(
            media.c.canonical_url == bindparam("canonical_url"),
            and_(
                media.c.provider == bindparam("provider"),
                media.c.provider_id == bindparam("provider_id"),
            ),
        ),
    )
    .order_by(media.c.provider_id.is_(None))
    .limit(literal_column("1"))
    .with_for_update(key_share=True),
    Known,
)
# Waits for a transaction that inserts the same video, by either of its two keys.
_CREATE_VIDEO = upsert_returning(
    Known,
    media,
    {media.c[name]: bindparam(name) for name in _COLUMNS},
    lambda new: new.on_conflict_do_nothing().returning(
        media.c.id, media.c.processing_status, media.c.run_after
    ),
)

_SOURCES: dict[Kind, Callable[[str], urls.UrlIdentity]] = {
    Kind.WEB_ARTICLE: urls.identify_article,
    Kind.VIDEO: urls.identify_video,
}


@dataclass(frozen=True)
class Added:
    media_id: UUID
    kind: Kind
    #: Whether it is new to the viewer.
    created: bool
    #: Whether there is work to announce.
    due: bool


def guess_kind(url: str) -> Kind:
    """Guess what an address is from the address alone: a video, a recording, or else an article.

    A bad address is refused later, whatever the guess.
    """
    try:
        return Kind.VIDEO if urls.is_video(url) else Kind.WEB_ARTICLE
    except InvalidUrl:
        return Kind.VIDEO


def add_url(
    session: Session, viewer: UUID, kind: str, url: str, limits: Allowances, request_id: str | None = None
) -> Added:
    """Put the item of an address into the viewer's default library, and create it if it is new.

    One that failed is retried, which costs no quota. Raises InvalidKind, InvalidUrl, RateLimited.
    """
    if kind not in URL_KINDS:
        raise InvalidKind
    chosen = Kind(kind)
    source = _SOURCES[chosen](url)
    library = access.ensure_user(session, viewer)
    found = find_by_other_address(session, viewer, chosen, source.canonical_url)
    known, created = (
        (found, False) if found else get_or_create_media(session, viewer, chosen, source, request_id)
    )
    row: Known | MediaRow = known
    # What the viewer is told, and what it costs, depends on their own libraries only, not on what others hold.
    is_new = created or not access.can_read(session, row.id, viewer)
    hold_media(session, library, row.id)
    if is_new:
        quota.require_quota(session, limits, viewer, Operation.INGEST_URLS, 1)
        quota.record_usage(session, viewer, Operation.INGEST_URLS, 1, row.id)
    if row.processing_status is MediaStatus.FAILED:
        row = reset_failed(session, row.id, viewer, request_id)
    due = row.processing_status is MediaStatus.PENDING and row.run_after <= session.now
    return Added(row.id, chosen, is_new, due)


def hold_article(session: Session, viewer: UUID, url: str) -> Known:
    """Put the item of an address that was fetched for something else into the viewer's library, free of charge."""
    library = access.ensure_user(session, viewer)
    row, _ = get_or_create_media(session, viewer, Kind.WEB_ARTICLE, urls.identify_article(url), None)
    hold_media(session, library, row.id)
    return row


def identify_url(kind: Kind, url: str) -> urls.UrlIdentity:
    """Return what makes two addresses of a kind the same. Raises InvalidUrl."""
    return _SOURCES[kind](url)


def get_or_create_media(
    session: Session, viewer: UUID, kind: Kind, source: urls.UrlIdentity, request_id: str | None
) -> tuple[Known, bool]:
    """Return the item of an address, locked against deletion, and whether this call has created it.

    The caller has to put it into a library in the same transaction.
    """
    media_id = uuid4()
    values = {
        **vars(source),
        "id": media_id,
        "kind": kind.value,
        "run_after": session.now,
        "host": urls.host_of(source.canonical_url),
        "created_by_user_id": viewer,
        "created_at": session.now,
        "updated_at": session.now,
        "request_id": request_id,
    }
    if source.provider_id is None:
        (row,) = session.all(_GET_OR_CREATE, **values)
    else:
        row = _get_or_create_video(session, values)
    created = row.id == media_id
    if created:
        log_created(session, MEDIA_ROWS, media_id, actor=str(viewer))
    return row, created


def _get_or_create_video(session: Session, values: Mapping[str, Any]) -> Known:
    """A row that is in the way of a new one is found by the next look, unless it was deleted in between."""
    same = {name: values[name] for name in ("kind", "canonical_url", "provider", "provider_id")}
    while True:
        found = session.first(_FIND_VIDEO, **same) or session.first(_CREATE_VIDEO, **values)
        if found is not None:
            return found
