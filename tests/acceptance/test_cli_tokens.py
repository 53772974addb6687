"""`nexus token`: personal tokens and sign-in links in the terminal; and whose settings a command reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nexus.libraries.tokens import PREFIX
from tests.kit.commands import Terminal


def test_personal_tokens_are_made_listed_and_taken_back(terminal: Terminal) -> None:
    made = terminal.run("token", "--new", "My script", "--scope", "add")
    assert (made.code, made.out.startswith(PREFIX), made.out.count("\n")) == (0, True, 1)
    other = json.loads(terminal.run("token", "--new", "Other", "--json").out)
    assert (other["name"], other["scope"]) == ("Other", "read")
    listed = terminal.run("token", "--list").out
    assert "My script" in listed
    assert other["id"] in listed
    assert made.out.strip() not in listed
    assert [one["name"] for one in json.loads(terminal.run("token", "--list", "--json").out)] == [
        "My script",
        "Other",
    ]
    assert terminal.run("token", "--revoke", "My script").code == 0
    assert terminal.run("token", "--revoke", other["id"]).code == 0
    assert terminal.run("token", "--list").out == ""


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--new", ""], 1, "needs a name"),
        (["--new", "x", "--scope", "everything"], 2, "scope"),
        (["--revoke", "nothing"], 2, "nexus token --list"),
    ],
)
def test_what_can_not_be_done_with_a_token_is_said(
    terminal: Terminal, arguments: list[str], code: int, says: str
) -> None:
    ran = terminal.run("token", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err


def test_a_name_that_two_tokens_have_takes_back_neither(terminal: Terminal) -> None:
    for _ in range(2):
        terminal.run("token", "--new", "Twin")
    ran = terminal.run("token", "--revoke", "Twin")
    assert (ran.code, "several" in ran.err) == (2, True)
    assert terminal.run("token", "--list").out.count("Twin") == 2


def test_every_link_is_a_new_one(terminal: Terminal) -> None:
    assert terminal.run("token", "--link").out != terminal.run("token", "--link").out


def test_a_command_reads_no_env_file_of_the_current_folder(tmp_path: Path) -> None:
    """Somebody unpacks an archive, and runs Nexus among its files."""
    (tmp_path / ".env").write_text("NEXUS_DATABASE_URL=mysql://evil.example\nNEXUS_WORKER_THREADS=many\n")
    data = tmp_path / "data"
    command = [sys.executable, "-m", "nexus", "status", "--data-dir", str(data)]
    given = {name: value for name, value in os.environ.items() if not name.startswith("NEXUS_")}
    ran = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    (data / ".env").write_text("NEXUS_WORKER_THREADS=many\n")
    ran = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True, check=False)
    assert (ran.returncode, "NEXUS_WORKER_THREADS is not valid" in ran.stderr) == (2, True)
