"""A server or worker that starts before its PostgreSQL or Redis waits for it, each in a process of its own."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_server
from uuid import UUID, uuid4

import httpx2
import psycopg
import pytest
from redis import Redis
from sqlalchemy import make_url

from nexus.app import App
from nexus.cli.startup import Opening
from nexus.states.media import MediaStatus
from tests.kit import servers
from tests.kit.faults.network_lines import COMMIT, Lines, Moment, Trap
from tests.kit.http import Caller, data, problem
from tests.kit.installation import Nexus, installed
from tests.kit.media import status_of
from tests.kit.plugins import extract_by_url, signalled_at_start
from tests.kit.processes import Process
from tests.kit.servers import Server
from tests.kit.waiting import PATIENCE, eventually


@pytest.fixture(scope="module")
def own_postgres_server() -> Iterator[Server]:
    with servers.postgres_server(durable=True) as server:
        yield server


@pytest.fixture
def late(own_postgres_server: Server) -> Server:
    """A PostgreSQL that is not there yet, with an empty database."""
    if not own_postgres_server.running:
        own_postgres_server.start()
    with psycopg.connect(own_postgres_server.url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    own_postgres_server.stop()
    return own_postgres_server


@pytest.fixture
def there(own_postgres_server: Server) -> Server:
    if not own_postgres_server.running:
        own_postgres_server.start()
    return own_postgres_server


@contextmanager
def served(nexus: Nexus) -> Iterator[tuple[Process, Caller]]:
    """`nexus serve`, as soon as it says that it is alive."""
    port = servers.free_port()
    process = nexus.start("serve", "--port", str(port))
    with Caller(f"http://127.0.0.1:{port}", nexus.app.settings, uuid4()) as caller:
        eventually(lambda: is_alive(process, caller), "it listens")
        yield process, caller


def is_alive(process: Process, caller: Caller) -> bool:
    assert process.running, process.tail()
    try:
        return caller.get("/healthz").status_code == 200
    except httpx2.TransportError:
        return False


def is_ready(caller: Caller) -> bool:
    return caller.get("/readyz").status_code == 200


def waiting(process: Process, what: str) -> list[str]:
    process.wait_for(f"waiting_for_{what}")
    return [line["says"] for line in process.events(f"waiting_for_{what}")]


def submit(caller: Caller) -> dict[str, object]:
    answer: dict[str, object] = data(caller.post("/media/url", json=an_article()))
    return answer


def an_article() -> dict[str, str]:
    return {"kind": "web_article", "url": f"https://example.com/ok/{uuid4().hex}"}


def is_readable(nexus: Nexus, media_id: object) -> bool:
    return status_of(nexus.app.sessions, UUID(str(media_id))) is MediaStatus.READY_FOR_READING


def test_a_server_listens_before_its_database_is_up_and_becomes_ready_with_it(
    late: Server, tmp_path: Path
) -> None:
    with installed(late.url, tmp_path) as nexus, served(nexus) as (process, me):
        said = waiting(process, "database")
        assert len(said) == 1
        assert "The database can't be reached. Start it, or check NEXUS_DATABASE_URL." in said[0]
        for path in ("/readyz", "/media", "/libraries"):
            answer = me.get(path)
            assert problem(answer) == (503, "E_NOT_READY")
            assert str(late.port) not in answer.text
        assert "NEXUS_DATABASE_URL" in me.get("/readyz").json()["error"]["message"]
        assert me.post("/media/url", json=an_article()).status_code == 503
        jobs = me.get("/api/ingestion-jobs")
        assert (jobs.status_code, jobs.json()["error"]) == (503, "E_NOT_READY")
        page = me.get("/", headers={"Accept": "text/html"})
        assert (page.status_code, page.headers["content-type"][:9]) == (503, "text/html")
        assert me.get("/metrics").status_code == 200
        assert process.events("server_ready") == []

        late.start()
        process.wait_for("server_ready")
        assert data(me.get("/readyz")) == {"status": "ok"}
        answer = submit(me)
        eventually(lambda: is_readable(nexus, answer["media_id"]), "its workers work")
        assert len(waiting(process, "database")) == 1
        assert process.stop() == 0


def test_a_worker_waits_for_its_database(late: Server, tmp_path: Path) -> None:
    with installed(late.url, tmp_path) as nexus:
        worker = nexus.worker()
        assert len(waiting(worker, "database")) == 1
        assert worker.events("worker_ready") == []
        late.start()
        worker.wait_for("worker_ready")
        with served(nexus) as (_, me):
            eventually(lambda: is_ready(me), "the server is ready")
            answer = submit(me)
            eventually(lambda: is_readable(nexus, answer["media_id"]), "the work is done")
        assert worker.stop() == 0


def test_a_server_and_a_celery_worker_wait_for_their_broker(
    there: Server, broker: Server, tmp_path: Path
) -> None:
    """The server accepts work meanwhile: the database is the queue."""
    extract_by_url.register()
    broker.kill()
    with installed(there.url, tmp_path, queue="celery", redis_url=broker.url) as nexus:
        worker = nexus.worker()
        assert "Redis can't be reached. Start it, or check NEXUS_REDIS_URL." in waiting(worker, "broker")
        with served(nexus) as (process, me):
            assert len(waiting(process, "broker")) == 1
            assert "NEXUS_REDIS_URL" in me.get("/readyz").json()["error"]["message"]
            assert problem(me.get("/readyz")) == (503, "E_NOT_READY")
            answer = submit(me)
            assert answer["enqueued"] is False
            broker.start()
            process.wait_for("server_ready")
            assert is_ready(me)
            eventually(lambda: is_readable(nexus, answer["media_id"]), "the worker has found it")
        assert worker.stop() == 0


@pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.WITHIN, Moment.AFTER])
def test_a_server_that_loses_its_database_while_it_makes_the_sign_in_link_goes_on(
    own_postgres_url: str, lines: Lines, tmp_path: Path, moment: Moment
) -> None:
    line = lines.to(own_postgres_url)
    trap = line.arm(Trap((b"INSERT INTO sign_in_links", COMMIT), moment))
    with installed(line.url, tmp_path) as nexus, served(nexus) as (process, me):
        process.wait_for("server_ready")
        assert trap.sprung.is_set()
        assert len(waiting(process, "database")) == 1
        assert is_ready(me)
        assert sum("/sign-in?token=" in line for line in process.lines()) == 1
        assert process.stop() == 0


@pytest.mark.parametrize("command", ["serve", "worker"])
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("queue", ["local", "celery"])
def test_a_signal_ends_the_wait_for_a_database(
    late: Server, tmp_path: Path, command: str, sign: int, queue: str
) -> None:
    with installed(late.url, tmp_path, queue=queue, port=0) as nexus:
        process = nexus.start(command)
        waiting(process, "database")
        process.send(signal.Signals(sign))
        assert process.wait() == 0
        assert not any("Traceback" in line for line in process.lines())


def test_a_part_that_can_not_start_leaves_none_running(app: App) -> None:
    class Part:
        def __init__(self, *, breaks: bool) -> None:
            self._breaks = breaks
            self.stopped = False

        def start(self) -> None:
            if self._breaks:
                raise RuntimeError

        def stop(self) -> None:
            self.stopped = True

    sound, broken, over = Part(breaks=False), Part(breaks=True), threading.Event()
    opening = Opening(app, [sound, broken], lambda: None, over.set)
    opening.start()
    assert over.wait(PATIENCE)
    opening.stop()
    assert isinstance(opening.failure, RuntimeError)
    assert sound.stopped


@pytest.mark.parametrize("command", ["serve", "worker"])
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_comes_before_the_process_listens_ends_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, sign: int
) -> None:
    monkeypatch.setenv(signalled_at_start.SIGNAL_AT_START, str(int(sign)))
    plugins = ("tests.kit.plugins.signalled_at_start",)
    with installed(f"sqlite:///{tmp_path}/nexus.db", tmp_path, plugins=plugins, port=0) as nexus:
        process = nexus.start(command)
        assert process.wait() == 0, process.tail()
        assert not any("Traceback" in line for line in process.lines())


@pytest.mark.parametrize("command", ["serve", "worker"])
def test_a_signal_ends_an_attempt_to_connect(tmp_path: Path, command: str) -> None:
    """To a server that accepts the connection and never answers."""
    with create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql+psycopg://nexus@127.0.0.1:{silent.getsockname()[1]}/nexus"
        with installed(url, tmp_path, port=0) as nexus:
            process = nexus.start(command)
            connection, _ = silent.accept()
            with connection:
                process.send(signal.SIGTERM)
                assert process.wait() == 0


@pytest.mark.parametrize("command", ["serve", "worker"])
@pytest.mark.parametrize("wrong", ["user", "database", "password"])
def test_a_database_error_that_waiting_can_not_fix_ends_the_process(
    there: Server, tmp_path: Path, command: str, wrong: str
) -> None:
    url = make_url(there.url)
    if wrong == "password":
        rules = there.folder / "data" / "pg_hba.conf"
        rules.write_text("host all stranger 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n")
        with psycopg.connect(there.url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute("DROP USER IF EXISTS stranger")
            connection.execute("CREATE USER stranger PASSWORD 'right'")
            connection.execute("SELECT pg_reload_conf()")
        url = url.set(username="stranger", password="wrong")
    else:
        url = url.set(username="nobody_here") if wrong == "user" else url.set(database="nothing_here")
    with installed(url.render_as_string(hide_password=False), tmp_path, port=0) as nexus:
        process = nexus.start(command)
        assert process.wait() == 1
        assert process.events("waiting_for_database") == []
        said = process.tail()
        assert "The database refuses the connection. Check the user, the password and the name" in said
        assert "Traceback" not in said


@pytest.mark.parametrize("command", ["serve", "worker"])
def test_a_password_that_redis_refuses_ends_the_process_with_a_sentence(
    there: Server, broker: Server, tmp_path: Path, command: str
) -> None:
    with Redis.from_url(broker.url) as client:
        client.config_set("requirepass", "another")
    with installed(there.url, tmp_path, queue="celery", redis_url=broker.url, port=0) as nexus:
        process = nexus.start(command)
        assert process.wait() == 1
        assert "Redis refuses the connection. Check the user and the password" in process.tail()
        assert "Traceback" not in process.tail()
