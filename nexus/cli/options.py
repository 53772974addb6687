"""Options that several commands take. No `from __future__ import annotations`, as in commands.py."""

from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

DataDir = Annotated[
    Path | None,
    typer.Option(
        help="The folder of the database and the local secrets; NEXUS_DATA_DIR, else ~/.local/share/nexus.",
        show_default=False,
    ),
]
User = Annotated[
    UUID | None,
    typer.Option(help="Act as this user instead of the local owner.", show_default=False, metavar="UUID"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Host = Annotated[
    str | None, typer.Option(help="The address to listen on; NEXUS_HOST, else 127.0.0.1.", show_default=False)
]
Port = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="The port to listen on; NEXUS_PORT, else 8000.", show_default=False),
]
Ids = Annotated[
    list[UUID] | None, typer.Argument(help="Ids of items.", metavar="[ID]...", show_default=False)
]
