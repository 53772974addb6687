# ruff: noqa: PLC0415
"""Every command and its options. The code behind a command is imported when it is called: --help answers at once.

No `from __future__ import annotations` here: typer reads every annotation at each start, and compiling strings is slow.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

import nexus
from nexus.cli import feed_commands, list_commands, sharing_commands
from nexus.cli.failures import Polite
from nexus.cli.options import AsJson, DataDir, Host, Ids, Port, User

app = typer.Typer(
    cls=Polite,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
db = typer.Typer(no_args_is_help=True, help="Show or change the revision of the database.")
app.add_typer(db, name="db")
models = typer.Typer(no_args_is_help=True, help="Show or install the model for search by meaning.")
app.add_typer(models, name="models")


class UrlKind(StrEnum):
    """The kinds that need no more than a URL."""

    WEB_ARTICLE = "web_article"
    VIDEO = "video"


KindOfUrl = Annotated[
    UrlKind | None,
    typer.Option(
        help="What the addresses are. Without it, those of videos and of files with sound are videos, others articles.",
        show_default=False,
    ),
]


class TokenScope(StrEnum):
    """What a personal token opens."""

    READ = "read"
    ADD = "add"
    ALL = "all"
    FEED = "feed"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nexus {nexus.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Nexus takes in what you read and watch, and turns it into text that is there when you need it.

    Start with: nexus serve. Settings are NEXUS_* variables, in the environment or in .env in the data folder.
    """


@app.command()
def serve(data_dir: DataDir = None, host: Host = None, port: Port = None) -> None:
    """Start Nexus: pages, API and workers; prints the sign-in link."""
    from nexus.cli.server import run_server

    run_server(data_dir, host, port)


@app.command()
def worker(data_dir: DataDir = None) -> None:
    """Start workers without a server, on the configured queue."""
    from nexus.cli.server import run_worker

    run_worker(data_dir)


@app.command()
def add(
    urls: Annotated[
        list[str],
        typer.Argument(
            help="Web addresses, PDFs, EPUBs and text files to add.", metavar="URL...", show_default=False
        ),
    ],
    kind: KindOfUrl = None,
    library: Annotated[
        str | None,
        typer.Option(
            help="Also add them to the library of this name, which is created if needed.", show_default=False
        ),
    ] = None,
    user: User = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per URL.")] = False,
) -> None:
    """Add web addresses and files, and wait until they are ready."""
    from nexus.cli.add import add_sources

    add_sources(data_dir, user, urls, kind, library, as_json=as_json)


@app.command("import")
def import_(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="PDFs, EPUBs and text files, and folders of them.", metavar="PATH...", show_default=False
        ),
    ],
    library: Annotated[
        str | None,
        typer.Option(
            help="Import into the library of this name, which is created if needed.", show_default=False
        ),
    ] = None,
    user: User = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per file.")] = False,
) -> None:
    """Import many files at once: all of them, or none. Ctrl-C pauses."""
    from nexus.cli.importing import import_files

    import_files(data_dir, user, paths, library, as_json=as_json)


app.command()(list_commands.status)
app.command()(list_commands.search)


app.command()(feed_commands.subscribe)
app.command()(feed_commands.feeds)
app.command()(feed_commands.unsubscribe)


@app.command()
def retry(
    ids: Ids = None,
    all_failed: Annotated[bool, typer.Option("--all-failed", help="Everything that has failed.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until they are ready.")] = False,
    user: User = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per item.")] = False,
) -> None:
    """Retry what has failed."""
    from nexus.cli.retry import retry_items

    retry_items(data_dir, user, ids or [], all_failed=all_failed, wait=wait, as_json=as_json)


app.command()(list_commands.mark)
app.command()(list_commands.embed)
models.command("show")(list_commands.models)
models.command("install")(list_commands.install_models)


@app.command()
def rm(
    ids: Annotated[list[UUID], typer.Argument(help="Ids of items.", metavar="ID...", show_default=False)],
    user: User = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per item.")] = False,
) -> None:
    """Remove items from the libraries that you administer. What nobody else has is deleted."""
    from nexus.cli.rm import remove_items

    remove_items(data_dir, user, ids, as_json=as_json)


@app.command()
def refresh(
    ids: Ids = None,
    outdated: Annotated[
        bool, typer.Option("--outdated", help="Everything that an older extractor read.")
    ] = False,
    user: User = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per item.")] = False,
) -> None:
    """Refresh items from their sources. If a text has changed, your libraries get the new version."""
    from nexus.cli.refresh import refresh_items

    refresh_items(data_dir, user, ids or [], outdated=outdated, as_json=as_json)


@app.command()
def revisions(
    item: Annotated[UUID, typer.Argument(help="The item's id.", metavar="ID", show_default=False)],
    use: Annotated[
        int | None, typer.Option(min=1, help="Use this version from now on.", show_default=False)
    ] = None,
    enter: Annotated[
        Path | None,
        typer.Option(
            help="Use the text in this file as your own version; - is standard input.", show_default=False
        ),
    ] = None,
    diff: Annotated[
        tuple[int, int] | None,
        typer.Option(help="Compare two versions word by word.", metavar="N M", show_default=False),
    ] = None,
    user: User = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per version.")] = False,
) -> None:
    """List the versions of an item; use another one, enter one by hand, or compare two."""
    from nexus.cli.revisions import show_revisions

    show_revisions(data_dir, user, item, use=use, enter=enter, diff=diff, as_json=as_json)


@app.command()
def transcript(
    item: Annotated[UUID, typer.Argument(help="The item's id.", metavar="ID", show_default=False)],
    file: Annotated[
        Path,
        typer.Argument(
            help="WebVTT, SRT, JSON or plain text; - is standard input.", metavar="FILE", show_default=False
        ),
    ],
    user: User = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Use the transcript in a file as your own version of a video or an episode."""
    from nexus.cli.transcript import bring_from_file

    bring_from_file(data_dir, user, item, file, as_json=as_json)


@app.command()
def extract(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Web addresses and files to read: documents, recordings and transcripts.",
            metavar="URL-OR-FILE...",
            show_default=False,
        ),
    ],
    kind: KindOfUrl = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Show the text that Nexus extracts from web addresses and files. Nothing is saved."""
    from nexus.cli.extract import extract_sources

    extract_sources(sources, kind and kind.value, as_json=as_json)


@app.command()
def extractors(as_json: AsJson = False) -> None:
    """List the installed extractor for each kind."""
    from nexus.cli.extractors import list_extractors

    list_extractors(as_json=as_json)


@app.command()
def token(
    user: User = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the headers to send, as JSON.")] = False,
    as_link: Annotated[
        bool, typer.Option("--link", help="Print a new sign-in link instead; it works once, for ten minutes.")
    ] = False,
    new: Annotated[
        str | None,
        typer.Option(
            "--new",
            help="Make a personal token of this name and print it.",
            show_default=False,
            metavar="NAME",
        ),
    ] = None,
    scope: Annotated[
        TokenScope, typer.Option(help="What it allows: reading, adding items, everything, or only the feed.")
    ] = TokenScope.READ,
    as_list: Annotated[bool, typer.Option("--list", help="List the personal tokens.")] = False,
    revoke: Annotated[
        str | None,
        typer.Option("--revoke", help="Revoke a personal token.", show_default=False, metavar="NAME-OR-ID"),
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="The host of the link; NEXUS_HOST.", show_default=False)
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="The port of the link; NEXUS_PORT.", show_default=False),
    ] = None,
) -> None:
    """Print a bearer token for the API or a sign-in link; make, list and revoke personal tokens."""
    from nexus.cli import token as command

    if as_link:
        command.print_link(data_dir, user, host, port, as_json=as_json)
    elif new is not None:
        command.show_new_token(data_dir, user, new, scope, as_json=as_json)
    elif as_list:
        command.show_tokens(data_dir, user, as_json=as_json)
    elif revoke is not None:
        command.end_token(data_dir, user, revoke)
    else:
        command.print_token(data_dir, user, as_json=as_json)


@app.command()
def doctor(
    data_dir: DataDir = None,
    security: Annotated[
        bool,
        typer.Option(
            "--security", help="Check secrets, TLS, hosts, permissions, sandbox and versions instead."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check that everything is in order, and say what to do if it is not."""
    from nexus.cli.doctor import examine_installation

    examine_installation(data_dir, security=security, as_json=as_json)


@app.command()
def clean(
    data_dir: DataDir = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove what is found; without it, only list it.")
    ] = False,
) -> None:
    """Find what crashes left behind: files that belong to no item, uploads that never arrived, imports, old test runs.

    Objects that are younger than an hour are left alone: they may be on their way in.
    """
    from nexus.cli.clean import clean_up

    clean_up(data_dir, remove=remove)


for shared in (
    sharing_commands.profile,
    sharing_commands.invite,
    sharing_commands.invitations,
    sharing_commands.sign_out,
    sharing_commands.audit,
):
    app.command()(shared)


@db.command()
def upgrade(data_dir: DataDir = None) -> None:
    """Migrate the database to what this Nexus needs."""
    from nexus.cli.database import upgrade_database

    upgrade_database(data_dir)


@db.command()
def downgrade(
    revision: Annotated[str, typer.Argument(help="The revision to go back to; base is the empty database.")],
    data_dir: DataDir = None,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask. Without a terminal it is required.")] = False,
) -> None:
    """Take the database back to an earlier revision. What later ones added is lost."""
    from nexus.cli.database import downgrade_database

    downgrade_database(data_dir, revision, sure=yes)


@db.command()
def current(data_dir: DataDir = None) -> None:
    """Print the revision of the database."""
    from nexus.cli.database import show_revision

    show_revision(data_dir)
