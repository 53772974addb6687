"""Writes docs/reference, and the picture in docs/design.md, from the code. With --check it only compares, and fails if
a page is out of date."""

from __future__ import annotations

import re
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import typer

from nexus.app import build
from nexus.cli.commands import app as cli
from nexus.errors import ApiError, WorkError, describe, tree
from nexus.settings import Settings
from nexus.settings.shares import ShareSettings
from nexus.states.attempt import ATTEMPT
from nexus.states.capabilities import FLAGS
from nexus.states.job import JOB
from nexus.states.machine import Machine
from nexus.states.media import MEDIA
from nexus.states.story import STORY
from nexus.states.subscription import SUBSCRIPTION
from nexus.web import application

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
ROOMS = re.compile(r"(<!-- rooms[^\n]*-->\n).*?(<!-- /rooms -->)", re.DOTALL)
#: Defaults that depend on the machine.
COMPUTED = {"data_dir": "the user's data folder", "parser_processes": "the number of cores"}
NOTE = "<!-- Made from the code by `make docs`; changes here are lost. -->"


@cache
def pages() -> dict[str, str]:
    """Every page that is made here, by its path below docs."""
    made = {
        "states": states(),
        "capabilities": capabilities(),
        "errors": errors(),
        "settings": settings(),
        "cli": commands(),
        "http": http(),
    }
    whole = {f"reference/{name}.md": f"{NOTE}\n\n{text.strip()}\n" for name, text in made.items()}
    return {**whole, "design.md": design()}


def design() -> str:
    """The page as it is, with its picture of the rooms drawn again from the contract between them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [layer for layer in contracts[0]["layers"] if layer != "__main__"]
    lines = ["```mermaid", "flowchart TD"]
    lines += [f'    layer{place}["{layer}"]' for place, layer in enumerate(layers)]
    lines += [f"    layer{place} --> layer{place + 1}" for place in range(len(layers) - 1)]
    picture = "\n".join([*lines, "```\n"])
    return ROOMS.sub(
        lambda marks: f"{marks[1]}{picture}{marks[2]}", (ROOT / "docs" / "design.md").read_text()
    )


def states() -> str:
    parts = [
        "# States",
        "A cell says what a verb does to a row in that state: the state it goes to, `skip` if the work is done or "
        "under way already, or nothing if the verb is refused.",
    ]
    for machine in (MEDIA, JOB, STORY, SUBSCRIPTION, ATTEMPT):
        parts += [*_machine(machine)]
    return "\n\n".join(parts)


def _machine(machine: Machine[Any]) -> Iterable[str]:
    yield f"## {machine.name.capitalize()}"
    header, *rows = machine.matrix()
    yield _table(header, rows)
    yield f"```mermaid\n{machine.mermaid()}\n```"


def capabilities() -> str:
    return "\n\n".join(
        [
            "# Capabilities",
            "What a viewer can do with an item now. Every JSON answer of `GET /media/…` includes them. They depend "
            "only on the kind, the status, the code of the last error, and whether the item has a file, a text, and an "
            "address to play. Rely on them, not on the status.",
            _table(["flag", "means", "needs"], [[f"`{name}`", *flag] for name, flag in FLAGS.items()]),
            "A PDF that is locked with a password can't be shown, because Nexus has no password to give to a viewer. "
            "Its file can still be downloaded.",
        ]
    )


def errors() -> str:
    api_rows = [[f"`{e.code}`", str(e.status), describe(e)] for e in tree(ApiError)]
    work_rows = [[f"`{e.code}`", e.stage, "yes" if e.transient else "", describe(e)] for e in tree(WorkError)]
    return "\n\n".join(
        [
            "# Errors",
            "## Answers to requests",
            _table(["code", "HTTP", "meaning and what to do"], api_rows),
            "## Failures of work",
            "Stored in an item's `last_error_code`. Work that is retried automatically gets three tries in all.",
            _table(["code", "stage", "retried", "meaning and what to do"], work_rows),
            *(
                f"`{e.code}` is stored only in the database: clients see `{e.shown_as}` instead."
                for e in tree(WorkError)
                if e.shown_as is not None
            ),
        ]
    )


def settings() -> str:
    rows = []
    own_first = sorted(Settings.model_fields.items(), key=lambda item: item[0] in ShareSettings.model_fields)
    for name, field in own_first:
        variable = "CELERY_ALWAYS_EAGER" if name == "celery_always_eager" else f"NEXUS_{name.upper()}"
        default = COMPUTED[name] if field.default_factory else _shown(field.default)
        rows.append([f"`{variable}`", default, field.description or ""])
    return (
        "# Settings\n\nEnvironment variables, or lines of `.env` in the data folder, or of the file that "
        "`NEXUS_ENV_FILE` names instead. A `.env` in the current folder is not read. A secret can also be a file "
        "of its own, called like its variable, in the folder that `NEXUS_SECRETS_DIR` names or that systemd's "
        "`LoadCredential=` fills; a variable with the same name comes first.\n\n"
        + _table(["variable", "default", "meaning"], rows)
    )


def _shown(value: object) -> str:
    """Return a default as somebody would set it."""
    typed = ",".join(map(str, value)) if isinstance(value, tuple) else value
    return "" if typed in ("", None) else f"`{typed}`"


def commands() -> str:
    root = typer.main.get_command(cli)
    parts = ["# Commands"]
    parts += _command(root, "nexus")
    return "\n\n".join(parts)


def _command(command: Any, name: str) -> list[str]:
    children = getattr(command, "commands", None)
    if children:
        return [part for child in sorted(children) for part in _command(children[child], f"{name} {child}")]
    parts = [f"## `{name}`", (command.help or "").strip()]
    rows = [_parameter(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
    return [*parts, _table(["argument or option", "meaning"], rows)] if rows else parts


def _parameter(parameter: Any) -> list[str]:
    names = parameter.opts if parameter.param_type_name == "option" else [parameter.name.upper()]
    return [", ".join(f"`{name}`" for name in names), getattr(parameter, "help", None) or ""]


def http() -> str:
    parts = ["# HTTP", application.DESCRIPTION.strip()]
    for path, calls in openapi_document()["paths"].items():
        for method, call in calls.items():
            parts += [
                f"## `{method.upper()} {path}`",
                f"{call['summary']}. {call.get('description', '')}".strip(),
            ]
            rows = [_http_parameter(parameter) for parameter in call.get("parameters", [])]
            if rows := rows + _body_fields(call):
                parts.append(_table(["parameter", "in", "meaning"], rows))
            answers = [
                [status, answer["description"]] for status, answer in sorted(call["responses"].items())
            ]
            parts.append(_table(["answer", "meaning"], answers))
    return "\n\n".join(parts)


def _http_parameter(parameter: dict[str, Any]) -> list[str]:
    return [f"`{parameter['name']}`", parameter["in"], parameter.get("description", "")]


def _body_fields(call: dict[str, Any]) -> list[list[str]]:
    """The fields of a body of JSON; of several possible ones, each field once."""
    schemas = openapi_document()["components"]["schemas"]
    given = call.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    rows: dict[str, list[str]] = {}
    for one in given.get("anyOf", [given]):
        named = schemas[one["$ref"].rpartition("/")[2]] if "$ref" in one else one
        for name, field in named.get("properties", {}).items():
            place = "body" if name in named.get("required", ()) else "body, optional"
            rows.setdefault(name, [f"`{name}`", place, field.get("description", "")])
    return list(rows.values())


@cache
def openapi_document() -> dict[str, Any]:
    """Return what Nexus says about its API; making it takes a second or two."""
    with tempfile.TemporaryDirectory() as folder:
        app = build(Settings(_env_file=None, data_dir=Path(folder), database_url="sqlite://"))  # type: ignore[call-arg]
        document: dict[str, Any] = application.create_application(app).openapi()
        app.close()
    return document


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("\n", " ").replace("|", "\\|") for cell in line) + " |"
        for line in lines
    )


def main() -> None:
    stale = []
    for name, text in pages().items():
        path = DOCS / name
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if "--check" not in sys.argv:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    if stale and "--check" in sys.argv:
        sys.exit(f"Out of date: {', '.join(stale)}. Run: make docs")


if __name__ == "__main__":
    main()
