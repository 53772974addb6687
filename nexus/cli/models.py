"""`nexus models`: shows and installs the model for search by meaning."""

from __future__ import annotations

from pathlib import Path

import typer

from nexus.cli import say
from nexus.cli.context import read_settings
from nexus.embed import make_embedder, missing_model
from nexus.embed.installed import MODEL, find_installed
from nexus.embed.making import NotMade, make_model
