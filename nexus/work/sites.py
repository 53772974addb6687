"""The book of sites in PostgreSQL, for processes on several machines.

Its table is not logged: a change costs no wait for the disk, and after a crash nothing in it would be true anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from sqlalchemy import Float, bindparam, literal_column, select, update

from nexus.db.session import Query, Sessions, Statement
from nexus.db.site_pages import site_pages
from nexus.db.upserts import insert_or_nothing
from nexus.fetch.pace import SiteState
from nexus.fetch.shared import bucket_of, change_page

T = TypeVar("T")


class _Page(NamedTuple):
    page: str
    #: The server's clock: those of several machines may differ.
    now: float


_READ = Query(
    select(
        site_pages.c.page,
        literal_column("extract(epoch from clock_timestamp())::float8", Float).label("now"),
    ).where(site_pages.c.bucket == bindparam("of_bucket")),
    _Page,
)
_NEW = insert_or_nothing(site_pages)
_WRITE = Statement(
    update(site_pages)
    .where(site_pages.c.bucket == bindparam("of_bucket"), site_pages.c.page == bindparam("before"))
    .values(page=bindparam("page"))
)


class DatabaseBook:
    """Writes a page only if it is still as it was read, and otherwise begins again: nobody holds a lock meanwhile."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def change(self, site: str, act: Callable[[SiteState, float], T]) -> T:
        bucket = bucket_of(site)
        with self._sessions.single() as session:
            while True:
                found = session.first(_READ, of_bucket=bucket)
                if found is None:  # only the first time, and after a crash of the server
                    session.run(_NEW, bucket=bucket, page="{}")
                    continue
                page, result = change_page(found.page, site, act, found.now)
                if page == found.page or session.run(_WRITE, of_bucket=bucket, before=found.page, page=page):
                    return result
