"""Every command keeps its promise: what it prints, where, and how it ends."""

from __future__ import annotations

import html
import json
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import nexus
from tests.kit.commands import Ran, Running, Terminal, listed_items
from tests.kit.plugins import extract_by_url

OK, FAIL, GATED, SECOND = (f"https://example.com/{tale}/1" for tale in ("ok", "fail", "gated", "second"))
VIDEO = "https://youtu.be/dQw4w9WgXcQ"
PROD = {
    "NEXUS_ENV": "prod",
    "NEXUS_JWT_SECRET": "j" * 40,
    "NEXUS_INTERNAL_SECRET": "i" * 40,
    "NEXUS_SESSION_SECRET": "s" * 40,
}
LINK = re.compile(r"http://127\.0\.0\.1:(\d+)/sign-in\?token=([\w.-]+)")


@pytest.fixture
def terminal(terminal: Terminal) -> Terminal:
    """With extractors that do what a URL says."""
    terminal.environment |= {
        "NEXUS_PLUGINS": "tests.kit.plugins.extract_by_url",
        "NEXUS_BACKOFF_SECONDS": "0.05",
        extract_by_url.FOLDER: str(terminal.folder),
    }
    return terminal


def objects(ran: Ran) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ran.out.splitlines()]


def call(running: Running, path: str, headers: dict[str, str]) -> tuple[int, Any]:
    port = running.until(LINK.search)[1]
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def assert_signs_in(terminal: Terminal, running: Running) -> None:
    """The command on the sign-in page, as it stands there, prints a link to this very server."""
    port = running.until(LINK.search)[1]
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/")
    with refused.value:
        page = refused.value.read().decode()
    shown = re.search(r'<code class="command">([^<]*token --link[^<]*)</code>', page)
    assert shown is not None
    words = shlex.split(html.unescape(shown[1]))
    link = LINK.match(terminal.run(*words[words.index("token") :]).out)
    assert link is not None
    assert link[1] == port
    with urllib.request.urlopen(link[0]) as opened:
        assert opened.status == 200


def test_both_spellings_start_the_command() -> None:
    """In new processes that import everything, as a user's do."""
    script = Path(sys.executable).with_name("nexus")
    for spelling in ([str(script)], [sys.executable, "-m", "nexus"]):
        ran = subprocess.run([*spelling, "--version"], capture_output=True, text=True, check=True)
        assert ran.stdout == f"nexus {nexus.__version__}\n"


def test_help_describes_every_command_in_one_line(terminal: Terminal) -> None:
    ran = terminal.run("--help")
    assert ran.code == 0
    for name in ("serve", "worker", "add", "status", "retry", "token", "doctor", "db"):
        assert re.search(rf"│ {name}\s+\S", ran.out)


@pytest.mark.parametrize(
    "name", ["serve", "worker", "add", "status", "retry", "token", "doctor", "db upgrade"]
)
def test_every_command_takes_a_data_folder_after_its_name(terminal: Terminal, name: str) -> None:
    ran = terminal.run(*name.split(), "--help")
    assert ran.code == 0
    assert "--data-dir" in ran.out


def test_a_misspelt_command_is_reported_as_misuse(terminal: Terminal) -> None:
    ran = terminal.run("ad", OK)
    assert ran.code == 2
    assert "No such command" in ran.err


def test_add_tells_in_plain_lines_what_became_of_each_address(terminal: Terminal) -> None:
    ran = terminal.run("add", OK, FAIL, SECOND, VIDEO, "nonsense", "--library", "Re  search")
    assert ran.code == 1
    ends = {line.split("\t")[2]: line.split("\t")[0] for line in ran.out.splitlines()}
    assert ends == {
        OK: "readable",
        FAIL: "failed",
        SECOND: "readable",
        VIDEO: "queued",
        "nonsense": "refused",
    }
    assert "Couldn't extract the text: There is no text in it. (E_EXTRACTION_FAILED)\n" in ran.out
    assert "nonsense\tThis is not a web address" in ran.out
    assert ran.err == "", "a failure is printed once"
    assert "No processor for video" in ran.out
    assert "\x1b" not in ran.out + ran.err

    named = listed_items(terminal, "--library", "Re search")
    assert {one["canonical_url"] for one in named} == {
        OK,
        FAIL,
        SECOND,
        "https://www.youtube.com/watch?v=dQw4w9WgXcQ",
    }
    assert len(listed_items(terminal, "--library", "My library")) == 4


def test_what_another_user_added_is_new_to_the_one_who_adds_it(terminal: Terminal) -> None:
    """Neither `add` nor `status` says that somebody had it before."""
    stranger = str(uuid4())
    terminal.run("add", OK, "--user", stranger)
    (theirs,) = listed_items(terminal, "--user", stranger)
    (added,) = objects(terminal.run("add", OK, "--json"))
    assert (added["result"], added["created"]) == ("readable", True)
    (mine,) = listed_items(terminal)
    dates = [value for name, value in mine.items() if name.endswith("_at") and value]
    assert min(dates) > max(value for name, value in theirs.items() if name.endswith("_at") and value)


def test_add_answers_in_json_if_asked_to(terminal: Terminal) -> None:
    first = objects(terminal.run("add", OK, "--json"))
    ran = terminal.run("add", OK, FAIL, "ftp://example.com/", VIDEO, "--json")
    again, *others = sorted(objects(ran), key=lambda one: one["result"])
    assert ran.code == 1
    assert first[0].keys() == {"url", "media_id", "created", "result", "error", "media"}
    assert first[0]["result"] == "readable"
    assert first[0]["created"] is True
    assert first[0]["media"]["processing_status"] == "ready_for_reading"
    assert (again["result"], again["media_id"]) == ("already_there", first[0]["media_id"])
    failed, queued, refused = others
    assert failed["error"] == {
        "stage": "extract",
        "code": "E_EXTRACTION_FAILED",
        "message": "There is no text in it.",
    }
    assert (queued["result"], queued["media"]["processing_status"]) == ("queued", "pending")
    assert (refused["error"]["code"], refused["media"]) == ("E_INVALID_URL", None)


def test_adding_an_item_that_exists_or_waits_is_no_failure(terminal: Terminal) -> None:
    ran = terminal.run("add", VIDEO)
    assert (ran.code, ran.err) == (0, "")
    kind = terminal.run("add", "https://example.com/film", "--kind", "video", "--json")
    assert objects(kind)[0]["media"]["kind"] == "video"
    assert terminal.run("add", OK, "--kind", "pdf").code == 2


def test_nobody_has_to_look_on_while_a_site_blocks_this_address(terminal: Terminal) -> None:
    ran = terminal.run("add", "https://example.com/blocked/1", OK)
    assert ran.code == 0
    ends = {line.split("\t")[2]: line.split("\t") for line in ran.out.splitlines()}
    assert ends[OK][0] == "readable"
    result, _, _, sentence = ends["https://example.com/blocked/1"]
    assert result == "waiting"
    assert re.fullmatch(
        r"example.com blocks this address at the moment. Nexus asks again at \d\d:\d\d.", sentence
    )
    assert "need a running Nexus" in ran.err
    (again,) = objects(terminal.run("add", "https://example.com/blocked/1", "--json"))
    assert (again["result"], again["media"]["processing_status"]) == ("waiting", "pending")


def test_added_items_stay_pending_with_extraction_off(terminal: Terminal) -> None:
    ran = terminal.run("add", OK, NEXUS_EXTRACTION="off")
    assert ran.code == 0
    assert "NEXUS_EXTRACTION is off" in ran.out
    assert [one["processing_status"] for one in listed_items(terminal)] == ["pending"]


def test_ctrl_c_during_add_stops_waiting_and_gives_the_work_back(terminal: Terminal) -> None:
    with terminal.start("add", GATED) as running:
        running.until(lambda _: extract_by_url.starts(terminal.folder))
        running.signal(signal.SIGINT)
        ran = running.wait()
    assert ran.code == 130
    assert "nothing is lost" in ran.err
    assert "Traceback" not in ran.err
    assert [one["processing_status"] for one in listed_items(terminal)] == ["pending"]
    extract_by_url.open_gate(terminal.folder)
    assert terminal.run("add", GATED).code == 0


def test_add_shows_its_progress_in_a_terminal(terminal: Terminal) -> None:
    code, seen = terminal.run_in_terminal("add", OK, FAIL)
    assert code == 1
    assert "✓ Ready" in seen
    assert "✗ Failed" in seen
    assert "\x1b[32m" in seen
    assert "\x1b[?25l" in seen  # the cursor is hidden while the spinner turns


def test_add_waits_for_celery_workers(terminal: Terminal, redis_url: str) -> None:
    celery = {"NEXUS_QUEUE": "celery", "NEXUS_REDIS_URL": redis_url}
    with terminal.start("worker", **celery), terminal.start("add", OK, **celery) as running:
        assert running.wait().code == 0
    assert terminal.run("doctor", **celery).code == 0


def test_a_worker_runs_without_a_server_and_finishes_its_work_when_stopped(terminal: Terminal) -> None:
    terminal.run("add", GATED, NEXUS_EXTRACTION="off")
    with terminal.start("worker") as running:
        running.until(lambda _: "worker_ready" in running.err and extract_by_url.starts(terminal.folder))
        running.signal(signal.SIGTERM)
        extract_by_url.open_gate(terminal.folder)
        ran = running.wait()
    assert (ran.code, ran.out) == (0, "")
    assert [one["processing_status"] for one in listed_items(terminal)] == ["ready_for_reading"]


def test_add_says_that_it_waits_for_a_worker(terminal: Terminal, redis_url: str) -> None:
    celery = {"NEXUS_QUEUE": "celery", "NEXUS_REDIS_URL": redis_url}
    with terminal.start("add", OK, **celery) as running:
        running.until(lambda _: "Is one running?" in running.err)
        running.signal(signal.SIGINT)
        ran = running.wait()
    assert ran.code == 130
    assert "The workers continue" in ran.err


def test_status_counts_lists_and_finds_by_id(terminal: Terminal) -> None:
    empty = terminal.run_in_terminal("status")[1]
    assert "Nothing here yet" in empty
    done = objects(terminal.run("add", OK, FAIL, "--json"))
    ran = terminal.run("status")
    assert ran.code == 0
    assert "ready_for_reading=1" in ran.out.splitlines()[0]
    assert "failed=1" in ran.out.splitlines()[0]
    assert len(ran.out.splitlines()) == 3
    found = listed_items(terminal, done[0]["media_id"])
    assert found == [done[0]["media"]]
    assert [one["processing_status"] for one in listed_items(terminal, "--status", "failed")] == ["failed"]
    assert len(listed_items(terminal, "--limit", "1")) == 1
    assert "Couldn't extract the text" in terminal.run_in_terminal("status")[1]


def test_status_says_which_id_it_does_not_know(terminal: Terminal) -> None:
    unknown = terminal.run("status", uuid4(), "--json")
    assert (unknown.code, json.loads(unknown.out)) == (1, [])
    assert "Not found, or you don't have access." in unknown.err
    assert terminal.run("status", "one").code == 2
    library = terminal.run("status", "--library", "None")
    assert library.code == 1
    assert "There is no library “None”" in library.err


def test_retry_tries_again_and_says_what_came_of_it(terminal: Terminal) -> None:
    done = {one["url"]: one["media_id"] for one in objects(terminal.run("add", OK, FAIL, "--json"))}
    mixed = terminal.run("retry", done[OK], done[FAIL], uuid4())
    assert mixed.code == 1
    assert sorted(line.split("\t")[0] for line in mixed.out.splitlines()) == [
        "refused",
        "refused",
        "waiting",
    ]
    assert "Only what has failed can be retried." in mixed.out
    assert "nexus serve" in mixed.err
    assert terminal.run("add", FAIL).code == 1
    waited = terminal.run("retry", "--all-failed", "--wait", "--json")
    assert waited.code == 1
    assert objects(waited)[0]["media"]["processing_attempts"] == 3


def test_retry_says_that_there_is_nothing_to_do(terminal: Terminal) -> None:
    nothing = terminal.run("retry", "--all-failed")
    assert nothing.code == 0
    assert "Nothing has failed." in nothing.err
    assert terminal.run("retry").code == 2


def test_a_restarted_server_still_serves_what_the_token_opens(tmp_path: Path, terminal: Terminal) -> None:
    """In a folder that does not exist yet, twice."""
    data = tmp_path / "new"
    with terminal.start("serve", "--port", "0", "--data-dir", data) as running:
        headers = json.loads(terminal.run("token", "--json", "--data-dir", data).out)
        assert headers.keys() == {"Authorization", "X-Nexus-Internal"}
        status, answer = call(running, "/media", headers)
        assert (status, answer["data"]["items"]) == (200, [])
        assert call(running, "/media", {})[0] == 401
        assert_signs_in(terminal, running)
        bearer = terminal.run("token", "--data-dir", data).out.strip()
        assert call(running, "/media", {**headers, "Authorization": f"Bearer {bearer}"})[0] == 200
        running.signal(signal.SIGTERM)
        ran = running.wait()
    assert ran.code == 0
    assert "alembic" not in ran.err
    assert "url=http://127.0.0.1:" in ran.err
    kept = (data / "secrets.json").read_text()
    assert stat.S_IMODE((data / "secrets.json").stat().st_mode) == 0o600
    with terminal.start("serve", "--host", "0.0.0.0", "--port", "0", "--data-dir", data) as running:
        assert call(running, "/libraries", headers)[1]["data"]["items"][0]["is_default"] is True
        running.signal(signal.SIGINT)
        assert running.wait().code == 0
    assert (data / "secrets.json").read_text() == kept
    link = terminal.run("token", "--link", "--port", "8123", "--data-dir", data).out
    assert link.startswith("http://127.0.0.1:8123/sign-in?token=")


def test_sign_in_links_lead_to_the_public_address(terminal: Terminal) -> None:
    public = {"NEXUS_PUBLIC_URL": "https://nexus.example.com/"}
    begins = "https://nexus.example.com/sign-in?token="
    with terminal.start("serve", "--port", "0", **public) as running:
        running.until(lambda out: "Stop: Ctrl-C" in out)
        assert begins in running.out
        assert "http://" not in running.out
    assert terminal.run("token", "--link", **public).out.startswith(begins)
    assert json.loads(terminal.run("token", "--link", "--json", **public).out)["link"].startswith(begins)


def test_a_port_in_use_is_reported_in_a_sentence(terminal: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = terminal.run("serve", "--port", taken.getsockname()[1])
    assert (ran.code, ran.out) == (1, "")
    assert "is in use" in ran.err
    assert "--port" in ran.err
    assert "Traceback" not in ran.err


def test_serve_in_prod_needs_secrets_and_prints_no_link(terminal: Terminal) -> None:
    bare = terminal.run("serve", NEXUS_ENV="prod")
    assert bare.code == 2
    for name in ("NEXUS_JWT_SECRET or NEXUS_JWKS_URL", "NEXUS_INTERNAL_SECRET", "NEXUS_SESSION_SECRET"):
        assert name in bare.err
    with terminal.start("serve", "--port", "0", **PROD) as running:
        running.until(lambda out: "Stop: Ctrl-C" in out)
        running.signal(signal.SIGTERM)
        ran = running.wait()
    assert ran.code == 0
    assert "token" not in ran.out
    assert all(json.loads(line) for line in ran.err.splitlines())
    nobody = terminal.run("token", **PROD)
    assert nobody.code == 2
    assert "--user" in nobody.err
    assert terminal.run("token", "--user", uuid4(), **PROD).code == 0


@pytest.mark.parametrize(
    ("environment", "code", "says"),
    [
        ({"NEXUS_WORKER_THREADS": "many"}, 2, "NEXUS_WORKER_THREADS is not valid"),
        ({"NEXUS_DATABASE_URL": "mysql://there"}, 2, "NEXUS_DATABASE_URL is not valid"),
        ({"NEXUS_DATABASE_URL": "sqlite:////proc/none/nexus.sqlite3"}, 1, "can't be created"),
        ({"NEXUS_DATA_DIR": "/proc/none"}, 1, "The data folder can't be used"),
    ],
)
def test_a_mistake_of_the_user_is_reported_in_a_sentence(
    terminal: Terminal, environment: dict[str, str], code: int, says: str
) -> None:
    for command in (["status"], ["serve", "--port", "0"]):
        ran = terminal.run(*command, **environment)
        assert (ran.code, ran.out) == (code, "")
        assert says in ran.err
        assert len(ran.err.splitlines()) == 1


def test_a_missing_plugin_is_reported_in_a_sentence(terminal: Terminal) -> None:
    for command in (["retry", "--all-failed"], ["serve", "--port", "0"]):
        ran = terminal.run(*command, NEXUS_PLUGINS="no.such.module")
        assert (ran.code, ran.out) == (2, "")
        assert "NEXUS_PLUGINS can't be imported" in ran.err
        assert len(ran.err.splitlines()) == 1


def test_an_unreachable_database_is_reported_in_a_sentence(terminal: Terminal) -> None:
    ran = terminal.run("status", NEXUS_DATABASE_URL="postgresql://127.0.0.1:1/none")
    assert (ran.code, ran.out) == (1, "")
    assert "The database can't be reached" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_data_file_that_is_no_database_is_reported_in_a_sentence(terminal: Terminal) -> None:
    (terminal.data / "nexus.sqlite3").write_text("This is a letter, not a database. " * 40)
    ran = terminal.run("status")
    assert ran.code == 1
    assert "damaged or is not a database" in ran.err
    doctor = terminal.run("doctor")
    assert doctor.code == 1
    assert "problem\tdatabase.reachable" in doctor.out


def test_settings_are_also_read_from_a_file(terminal: Terminal) -> None:
    (terminal.data / ".env").write_text(
        "NEXUS_EXTRACTION=off\nNEXUS_PLUGINS=tests.kit.plugins.extract_by_url, json\n"
    )
    del terminal.environment["NEXUS_PLUGINS"]
    assert "NEXUS_EXTRACTION is off" in terminal.run("add", OK).out


def test_doctor_finds_nothing_wrong_with_a_healthy_database(terminal: Terminal) -> None:
    terminal.run("add", OK, FAIL)
    ran = terminal.run("doctor", "--json")
    report = json.loads(ran.out)
    assert (ran.code, report["healthy"]) == (0, True)
    assert {check["verdict"] for check in report["checks"]} == {"ok"}
    code, seen = terminal.run_in_terminal("doctor")
    assert code == 0
    assert "healthy" in seen


def test_doctor_reports_a_damaged_database(terminal: Terminal) -> None:
    terminal.run("token")
    (terminal.data / "secrets.json").chmod(0o644)
    ran = terminal.run("doctor")
    assert ran.code == 1
    assert re.search(r"problem\tsettings.secrets_file\t.*\tRun: chmod 600", ran.out)


def test_doctor_creates_no_database(terminal: Terminal) -> None:
    (terminal.data / "nexus.sqlite3").unlink()
    assert "There is no database" in terminal.run("doctor").out
    assert "base (head is" in terminal.run("db", "current").out
    assert not (terminal.data / "nexus.sqlite3").exists()


def test_db_upgrades_and_downgrades_the_database(terminal: Terminal) -> None:
    (terminal.data / "nexus.sqlite3").unlink()
    up = terminal.run("db", "upgrade")
    assert up.code == 0
    head = terminal.run("db", "current").out
    assert head.endswith(" (head)\n")
    unknown = terminal.run("db", "downgrade", "9999", "--yes")
    assert unknown.code == 1
    assert "Can't locate revision" in unknown.err
    unasked = terminal.run("db", "downgrade", "base")
    assert (unasked.code, "--yes" in unasked.err) == (2, True)
    with terminal.start_in_terminal("db", "downgrade", "base") as screen:
        screen.until("Continue?")
        screen.press("n\n")
        assert screen.wait() == 1
    assert terminal.run("db", "current").out == head
    down = terminal.run("db", "downgrade", "base", "--yes")
    assert (down.code, down.out) == (0, "The database is at revision base.\n")
    prod = terminal.run("status", "--user", uuid4(), **PROD)
    assert (prod.code, "Run: nexus db upgrade" in prod.err) == (1, True)
