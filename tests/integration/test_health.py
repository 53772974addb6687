"""What an operator looks at: liveness, readiness, metrics, and logs without secrets."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import create_server
from threading import Thread
from uuid import uuid4

import httpx2
import pytest
from sqlalchemy import make_url

from nexus import settings as nexus_settings
from nexus.app import build
from nexus.db.session import connect
from nexus.settings import Settings
from nexus.states.media import MediaStatus
from nexus.web.http import cookies
from tests.kit.http import NO_CERTIFICATES, PATIENCE, Site, data, headers_of, problem, serve
from tests.kit.media import walk_media_to
from tests.kit.settings import make_settings
from tests.kit.sign_ins import link_key, session_key


@contextmanager
def served(database_url: str, folder: Path) -> Iterator[Site]:
    app = build(make_settings(database_url, folder))
    with serve(app) as running:
        yield running
    app.close()


@pytest.fixture
def away(clean_postgres: str, tmp_path: Path) -> Iterator[Site]:
    """A server whose database does not answer."""
    with create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = make_url(clean_postgres).set(host="127.0.0.1", port=port, query={})
    with served(url.render_as_string(hide_password=False), tmp_path) as running:
        yield running


def test_a_healthy_server_is_alive_and_ready(site: Site) -> None:
    for path in ("/healthz", "/readyz"):
        assert data(site.anyone().get(path)) == {"status": "ok"}


def test_a_server_is_alive_but_not_ready_while_the_database_is_away(away: Site) -> None:
    client = away.anyone()
    assert data(client.get("/healthz")) == {"status": "ok"}
    answer = client.get("/readyz")
    assert problem(answer) == (503, "E_NOT_READY")
    assert "can't be reached" in answer.json()["error"]["message"]


def test_requests_are_answered_with_503_while_the_database_is_away(away: Site) -> None:
    """In the envelope too, and without a word about the database."""
    answer = away.caller().get("/media")
    assert problem(answer)[0] == 503
    assert "connection" not in answer.text


def test_metrics_are_answered_while_the_database_is_away(away: Site) -> None:
    """That is when operators look at them."""
    client = away.anyone()
    client.get("/readyz")
    page = client.get("/metrics")
    assert page.status_code == 200
    assert 'nexus_requests_total{method="GET",route="/readyz",status="503"} 1.0' in page.text


def test_a_server_is_not_ready_before_the_migration(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path / 'empty.sqlite3'}", tmp_path) as site:
        answer = site.anyone().get("/readyz")
        assert problem(answer) == (503, "E_NOT_READY")
        assert "nexus db upgrade" in answer.json()["error"]["message"]


def test_a_server_is_not_ready_before_the_migration_of_postgres(
    postgres_server_url: str, tmp_path: Path
) -> None:
    with served(postgres_server_url, tmp_path) as site:
        assert problem(site.anyone().get("/readyz")) == (503, "E_NOT_READY")


def test_requests_are_counted(site: Site) -> None:
    me = site.caller()
    for _ in range(3):
        me.get(f"/media/{uuid4()}")
    me.get("/media", params={"secret": "query"})
    me.post("/media/url", json={})
    me.get("/nowhere")
    page = site.anyone().get("/metrics")
    assert page.headers["content-type"].startswith("text/plain")
    for line in (
        'nexus_requests_total{method="GET",route="/media/{media_id}",status="404"} 3.0',
        'nexus_requests_total{method="GET",route="/media",status="200"} 1.0',
        'nexus_requests_total{method="POST",route="/media/url",status="400"} 1.0',
        'nexus_requests_total{method="GET",route="unrouted",status="404"} 1.0',
        'nexus_request_seconds_count{method="GET",route="/media"} 1.0',
    ):
        assert line in page.text.splitlines()
    assert "query" not in page.text


def test_media_are_counted_by_status(site: Site) -> None:
    me = site.caller()
    for status in (MediaStatus.PENDING, MediaStatus.FAILED, MediaStatus.FAILED):
        walk_media_to(site.app, me.add(), status)
    lines = site.anyone().get("/metrics").text.splitlines()
    counted = {status: f'nexus_media{{status="{status.value}"}} 0.0' for status in MediaStatus}
    counted |= {
        MediaStatus.PENDING: 'nexus_media{status="pending"} 1.0',
        MediaStatus.FAILED: 'nexus_media{status="failed"} 2.0',
    }
    assert [line for line in lines if line.startswith("nexus_media{")] == list(counted.values())


# --- logs ---


@dataclass(frozen=True)
class Process:
    """`nexus serve` with its log."""

    url: str
    settings: Settings
    lines: list[str]


ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


@contextmanager
def nexus_serve(folder: Path, log_format: str) -> Iterator[Process]:
    """On a port of its choice; its log is complete after the block."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NEXUS_")}
    environment |= {"NEXUS_LOG_FORMAT": log_format, "NEXUS_LOG_LEVEL": "debug", "NEXUS_EXTRACTION": "off"}
    command = [sys.executable, "-m", "nexus", "serve", "--data-dir", str(folder), "--port", "0"]
    with subprocess.Popen(
        command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        lines: list[str] = []
        reader = Thread(target=lambda: lines.extend(process.stderr or ()))
        reader.start()
        try:
            address = next(filter(None, map(ADDRESS.search, process.stdout or ())))[0]
            yield Process(address, nexus_settings.load(folder, _env_file=None), lines)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
            reader.join()


SECRET = "a-secret-word-in-a-query"


def knock(running: Process, folder: Path) -> list[str]:
    """Requests that go well, are refused, and break; the secrets that were in them."""
    user, chosen = uuid4(), running.settings
    headers = headers_of(chosen, user)
    sessions = connect(chosen.database)
    cookie, link = session_key(sessions, user), link_key(sessions, user)
    sessions.dispose()
    url = f"https://example.com/a?key={SECRET}#{SECRET}"
    with httpx2.Client(
        base_url=running.url, timeout=PATIENCE, headers=headers, verify=NO_CERTIFICATES
    ) as client:
        assert client.post("/media/url", json={"kind": "web_article", "url": url}).status_code == 200
        client.post("/media/url", json={"kind": SECRET, "url": url})
        client.post("/media/url", json={"kind": "web_article", "url": f"ftp://{SECRET}/"})
        client.post("/media/url", content=SECRET.encode(), headers={"Content-Type": "application/json"})
        client.get("/media", params={"cursor": SECRET})
        client.get("/nowhere", params={"token": SECRET})
        client.get("/media", headers={"Authorization": f"Bearer {headers['Authorization'][7:]}{SECRET}"})
        client.get("/media", headers={"X-Nexus-Internal": SECRET})
        client.get("/media", headers={"Cookie": f"{cookies.SESSION}={cookie}"})
        client.get("/events", headers={"Authorization": "", "Cookie": f"{cookies.SESSION}={cookie}{SECRET}"})
        client.get(f"/sign-in?token={link}{SECRET}")
        with sqlite3.connect(folder / "nexus.sqlite3") as database:
            database.execute("ALTER TABLE library_media RENAME TO gone")
        database.close()
        assert client.post("/media/url", json={"kind": "video", "url": url}).status_code == 500
        assert (
            client.get(f"/media/{uuid4()}?key={SECRET}", headers={"X-Request-ID": "broken"}).status_code
            == 500
        )
    tokens = [headers["Authorization"].removeprefix("Bearer "), cookie, link]
    return [SECRET, chosen.internal_secret, chosen.jwt_secret, chosen.session_secret, *tokens]


def test_logs_contain_no_secrets(tmp_path: Path) -> None:
    with nexus_serve(tmp_path, "json") as running:
        secrets = knock(running, tmp_path)
    log = "".join(running.lines)
    assert log.count("request_broke") == 2
    for secret in secrets:
        assert secret not in log
        assert secret[:40] not in log
    assert "?" not in log.replace("'?'", "").replace("(?", "")


def test_log_lines_of_a_request_carry_its_id(tmp_path: Path) -> None:
    with nexus_serve(tmp_path, "json") as running:
        knock(running, tmp_path)
    entries = [json.loads(line) for line in running.lines]
    ready = [entry["event"] for entry in entries].index("server_ready")
    of_requests = [entry for entry in entries[ready + 1 :] if not is_of_a_stop(entry)]
    assert {entry["event"] for entry in of_requests} >= {"request", "request_broke"}
    assert all(entry.get("request_id") for entry in of_requests), of_requests
    assert sum(entry["request_id"] == "broken" for entry in of_requests) == 2


def is_of_a_stop(entry: dict[str, object]) -> bool:
    """Which belongs to no request."""
    return str(entry["event"]).startswith(
        ("server_stopping", "Shutting down", "Waiting for", "Application shutdown", "Finished server")
    )


def test_human_readable_logs_contain_no_secrets(tmp_path: Path) -> None:
    """A traceback that shows local variables would show the headers of the request."""
    with nexus_serve(tmp_path, "console") as running:
        secrets = knock(running, tmp_path)
    log = "".join(re.sub(r"\x1b\[[0-9;]*m|[│\s]", "", line) for line in running.lines)
    for secret in secrets:
        assert secret[:40] not in log
