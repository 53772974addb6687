"""People, invitations and the audit log in the terminal."""

from __future__ import annotations

import json
from uuid import uuid4

from nexus.cli.failures import FAILED, MISUSED
from nexus.db.session import connect
from nexus.libraries import sign_ins, tokens
from tests.kit.commands import Terminal
from tests.kit.sign_ins import session_key

URL = "https://example.com/ok/1"


def library(terminal: Terminal, name: str) -> None:
    terminal.environment |= {"NEXUS_EXTRACTION": "off"}
    terminal.run("add", URL, "--library", name)


def test_a_profile_is_shown_and_changed(terminal: Terminal) -> None:
    assert "no name" in terminal.run("profile").out
    terminal.run("profile", "--name", "Ann Lee", "--email", "Ann@Example.com")
    shown = json.loads(terminal.run("profile", "--json").out)
    assert (shown["name"], shown["email"]) == ("Ann Lee", "ann@example.com")
    refused = terminal.run("profile", "--email", "rubbish")
    assert (refused.code, "not an email address" in refused.err) == (MISUSED, True)


def test_the_operator_signs_a_user_out_everywhere(terminal: Terminal) -> None:
    """Somebody who has left may still be signed in, here and there."""
    ben, ann = uuid4(), uuid4()
    for user in (ben, ann):
        terminal.run("token", "--new", "phone", "--user", user)
    sessions = connect(f"sqlite:///{terminal.data / 'nexus.sqlite3'}")
    for user in (ben, ben, ann):
        session_key(sessions, user)
    out = json.loads(terminal.run("sign-out", ben, "--json").out)
    assert out == {"user_id": str(ben), "browsers": 2, "tokens": 1}
    with sessions.read() as session:
        left = {
            user: (sign_ins.list_sign_ins(session, user), tokens.list_tokens(session, user))
            for user in (ben, ann)
        }
    sessions.dispose()
    assert left[ben] == ([], [])
    assert all(left[ann])


def test_an_invitation_is_sent_listed_and_accepted(terminal: Terminal) -> None:
    ben = str(uuid4())
    library(terminal, "Research")
    terminal.run("profile", "--name", "Ann Lee")
    terminal.run("profile", "--user", ben, "--email", "ben@example.com")
    sent = terminal.run("invite", "Ben@example.com", "--library", "Research")
    assert (sent.code, "ben@example.com" in sent.out) == (0, True)
    received = json.loads(terminal.run("invitations", "--user", ben, "--json").out)["received"]
    assert [(offer["library_name"], offer["inviter_name"]) for offer in received] == [("Research", "Ann Lee")]
    accepted = terminal.run("invitations", "--user", ben, "--accept", received[0]["id"])
    assert (accepted.code, accepted.out) == (0, "")
    assert terminal.run("status", "--user", ben, "--library", "Research").code == 0
    again = terminal.run("invitations", "--user", ben, "--accept", received[0]["id"])
    assert (again.code, "no longer open" in again.err) == (FAILED, True)


def test_an_invitation_is_declined_or_taken_back(terminal: Terminal) -> None:
    ben = str(uuid4())
    library(terminal, "Research")
    made = json.loads(terminal.run("invite", ben, "--library", "Research", "--admin", "--json").out)
    assert made["role"] == "admin"
    assert terminal.run("invitations", "--user", ben, "--decline", made["id"]).code == 0
    made = json.loads(terminal.run("invite", ben, "--library", "Research", "--json").out)
    taken = terminal.run("invitations", "--revoke", made["id"])
    assert (taken.code, "no open invitations" in taken.err) == (0, True)
    assert terminal.run("invitations", "--revoke", made["id"]).code == FAILED


def test_an_invitation_needs_a_library_of_ones_own(terminal: Terminal) -> None:
    refused = terminal.run("invite", "ann@example.com", "--library", "Nowhere")
    assert (refused.code, "You administer no library" in refused.err) == (FAILED, True)
    refused = terminal.run("invite", "ann@example.com", "--library", "My library")
    assert (refused.code, "default library can't be shared" in refused.err) == (FAILED, True)


def test_the_audit_log_is_shown(terminal: Terminal) -> None:
    library(terminal, "Research")
    terminal.run("invite", "ann@example.com", "--library", "Research")
    lines = terminal.run("audit").out.splitlines()
    assert [line.split("\t")[1] for line in lines] == ["item_shared", "invited"]
    assert "this machine" in lines[0]
    [entry] = map(json.loads, terminal.run("audit", "--event", "invited", "--json").out.splitlines())
    assert entry["about"] == "ann@example.com as member"
    assert len(terminal.run("audit", "--library", "Research", "--limit", "1").out.splitlines()) == 1
    assert terminal.run("audit", "--event", "nonsense").code == MISUSED
    assert terminal.run("audit", "--library", "Nowhere").code == FAILED
    assert terminal.run("audit", "--user", str(uuid4())).out == ""
