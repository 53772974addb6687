# ruff: noqa: PLC0415
"""The commands about feeds. commands.py has the others, and says why there is no
`from __future__ import annotations`."""

from typing import Annotated

import typer

from nexus.cli.options import AsJson, DataDir, User

OfLibrary = Annotated[str | None, typer.Option(help="Only this library.", show_default=False)]


def subscribe(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Addresses of feeds, of pages that name one, of YouTube channels and playlists; and OPML files.",
            metavar="URL|OPML...",
            show_default=False,
        ),
    ],
    library: Annotated[
        str | None,
        typer.Option(
            help="Subscribe the library of this name, which is created if needed.", show_default=False
        ),
    ] = None,
    latest: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=200,
            help="How many of the latest items to take in now; 3 for podcasts and with --full-text, else none.",
            show_default=False,
        ),
    ] = None,
    full_text: Annotated[
        bool,
        typer.Option("--full-text", help="Take in every new item; otherwise only those of podcasts are."),
    ] = False,
    user: User = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per feed.")] = False,
) -> None:
    """Subscribe to podcasts, blogs and channels, and look at each for the first time."""
    from nexus.cli.feeds import subscribe_to_sources

    subscribe_to_sources(data_dir, user, sources, library, latest, full_text=full_text, as_json=as_json)


def feeds(
    library: OfLibrary = None,
    opml: Annotated[bool, typer.Option("--opml", help="Print them as OPML, for another reader.")] = False,
    user: User = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List subscriptions, what each has brought, and whether it works."""
    from nexus.cli.feeds import print_subscriptions

    print_subscriptions(data_dir, user, library, as_opml=opml, as_json=as_json)


def unsubscribe(
    feed: Annotated[
        str,
        typer.Argument(
            help="The subscription's id, or its feed's address.", metavar="ID|URL", show_default=False
        ),
    ],
    library: OfLibrary = None,
    remove_items: Annotated[
        bool, typer.Option("--remove-items", help="Remove what it has brought as well; otherwise that stays.")
    ] = False,
    user: User = None,
    data_dir: DataDir = None,
) -> None:
    """End a subscription. What it has brought stays, unless you say otherwise."""
    from nexus.cli.feeds import end_subscription

    end_subscription(data_dir, user, feed, library, keeps_items=not remove_items)
