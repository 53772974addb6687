# ruff: noqa: PLC0415
"""The commands about the list of items. commands.py has the others, and says why there is no
`from __future__ import annotations`."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated
from uuid import UUID

import typer

from nexus.cli.options import AsJson, DataDir, Ids, User
from nexus.states.media import Kind, MediaStatus

DAY = ["%Y-%m-%d"]


class ListOrder(StrEnum):
    """What the list can be sorted by; `nexus.media.list_filters.Sort` is slow to load."""

    ADDED = "added"
    TITLE = "title"
    SITE = "site"
    PUBLISHED = "published"
    TIME = "time"


def status(
    ids: Ids = None,
    only: Annotated[
        MediaStatus | None, typer.Option("--status", help="Only items in this state.", show_default=False)
    ] = None,
    library: Annotated[str | None, typer.Option(help="Only this library.", show_default=False)] = None,
    kind: Annotated[Kind | None, typer.Option(help="Only this kind.", show_default=False)] = None,
    site: Annotated[
        str | None, typer.Option(help="Only this site, like example.com.", show_default=False)
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option(
            formats=DAY, metavar="DATE", help="Only what was added from this day on.", show_default=False
        ),
    ] = None,
    before: Annotated[
        datetime | None,
        typer.Option(
            formats=DAY, metavar="DATE", help="Only what was added before this day.", show_default=False
        ),
    ] = None,
    read: Annotated[
        bool | None, typer.Option("--read/--unread", help="Only what you have read, or have not.")
    ] = None,
    favourite: Annotated[bool, typer.Option("--favourite", help="Only your favourites.")] = False,
    archived: Annotated[
        bool, typer.Option("--archived", help="Only what you archived, which is left out otherwise.")
    ] = False,
    sort: Annotated[ListOrder, typer.Option(help="What to sort by.")] = ListOrder.ADDED,
    reverse: Annotated[bool, typer.Option("--reverse", help="Reverse the order.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="The most items to list.")] = 20,
    user: User = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the items as a JSON array.")] = False,
) -> None:
    """List items and their states."""
    from nexus.cli.status import show_status, wanted_of

    wanted = wanted_of(
        status=only,
        kind=kind,
        site=site,
        since=since,
        before=before,
        read=read,
        favourite=favourite or None,
        archived=archived,
        sort=sort,
        reverse=reverse,
    )
    show_status(data_dir, user, ids or [], wanted, library, limit, as_json=as_json)


def mark(
    ids: Annotated[list[UUID], typer.Argument(help="Ids of items.", metavar="ID...", show_default=False)],
    read: Annotated[bool | None, typer.Option("--read/--unread", help="Whether you have read them.")] = None,
    archived: Annotated[
        bool | None,
        typer.Option("--archive/--unarchive", help="Whether lists leave them out."),
    ] = None,
    favourite: Annotated[
        bool | None, typer.Option("--favourite/--no-favourite", help="Whether they are favourites of yours.")
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(help="What you call it; an empty title brings back the original.", show_default=False),
    ] = None,
    user: User = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per item.")] = False,
) -> None:
    """Mark items as read, archived or favourite, or give one a title of your own. Nobody else sees it."""
    from nexus.cli.mark import mark_items

    mark_items(data_dir, user, ids, read, archived, favourite, title, as_json=as_json)


def search(
    words: Annotated[
        list[str],
        typer.Argument(
            help='Words, "phrases", and the filters in:, kind:, site:, by:, before: and after:. Put what begins with '
            "- in quotes with the rest, or after --.",
            metavar="WORDS...",
            show_default=False,
        ),
    ],
    limit: Annotated[int, typer.Option(min=1, max=200, help="The most items to show.")] = 10,
    user: User = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Find items by their words and, if there is a model, by what they mean."""
    from nexus.cli.searching import print_found

    print_found(data_dir, user, " ".join(words), limit, as_json=as_json)


def embed(
    status: Annotated[  # noqa: ARG001 what it shows, and all that there is to ask
        bool, typer.Option("--status", help="Show how much is searchable by meaning.")
    ] = True,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Index items again that the doctor names, and the index of words."),
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show which model makes texts searchable by meaning, and how far it has come; or repair the index."""
    from nexus.cli.embed import index_again, show_embedding

    (index_again if repair else show_embedding)(data_dir, as_json=as_json)


def models(as_json: AsJson = False) -> None:
    """Show the model that Nexus makes for search by meaning, and whether it is installed."""
    from nexus.cli.models import show_model

    show_model(as_json=as_json)


def install_models(
    again: Annotated[bool, typer.Option("--again", help="Rebuild it even if it is installed.")] = False,
) -> None:
    """Fetch the model's weights, check them and build the model. Once is enough."""
    from nexus.cli.models import install_model

    install_model(again=again)
