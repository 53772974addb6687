"""How fast a large file is uploaded to local storage, and how much memory the server needs for it."""

from __future__ import annotations

import hashlib
import shutil
import time
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import httpx2

from bench.over_http import Running, nexus_server
from bench.places import Place
from bench.table import Line, interleaved, ratio

MIB = 1024 * 1024
SIZE = 1024 * MIB
ROUNDS = 3
LEAST = 0.6
MOST_MEMORY = 64.0
PDF = "application/pdf"


def ask(place: Place) -> list[Line]:
    """Compare the upload and check of 1 GiB with its sha256 and a plain copy."""
    source, folder = place.folder / "large.pdf", place.folder / "uploads"
    _write(source)
    # Extraction is off: this measures the upload, and a reader would compete with both sides.
    alone = {"NEXUS_MAX_PDF_MIB": "2048", "NEXUS_EXTRACTION": "off"}
    with nexus_server(place.migrated("sqlite"), folder, **alone) as nexus:
        _take_in(nexus, source)  # so that what the first request loads does not count
        before = memory(nexus.pid)
        speed = interleaved(
            ROUNDS,
            {"nexus": partial(_take_in, nexus, source), "limit": partial(_copy_and_hash, source)},
            warm_up=False,
        )
        grown = (memory(nexus.pid, peak=True) - before) / MIB
    return [
        Line(
            "1 GiB uploaded and checked, hash and copy",
            f"{median(speed['nexus']):,.0f} MiB/s",
            f"{median(speed['limit']):,.0f} MiB/s",
            ratio(speed, "nexus", "limit"),
            at_least=LEAST,
        ),
        Line("memory of the server, MiB", f"{grown:.0f}", "", grown, at_most=MOST_MEMORY),
    ]


def _take_in(nexus: Running, source: Path) -> float:
    """Return MiB per second, from the first byte to the end of the check. Deletes it, so that none is a duplicate."""
    given = {"kind": "pdf", "filename": "large.pdf", "content_type": PDF, "size_bytes": SIZE}
    with httpx2.Client(
        base_url=f"http://127.0.0.1:{nexus.port}", headers=nexus.headers, timeout=300
    ) as client:
        begun = client.post("/media/upload/init", json=given).raise_for_status().json()["data"]
        _touchmemory(source)
        began = time.perf_counter()
        _put(begun["upload_url"], begun["upload_headers"], source)
        client.post(f"/media/{begun['media_id']}/ingest").raise_for_status()
        seconds = time.perf_counter() - began
        client.delete(f"/media/{begun['media_id']}").raise_for_status()
    return SIZE / MIB / seconds


def _put(url: str, headers: dict[str, str], source: Path) -> None:
    """Let the kernel send the file, like the copy, so that the client uses little CPU."""
    address = urlsplit(url)
    connection = HTTPConnection(address.netloc, timeout=300)
    connection.putrequest("PUT", f"{address.path}?{address.query}")
    for name, value in {**headers, "Content-Length": str(SIZE)}.items():
        connection.putheader(name, value)
    connection.endheaders()
    with source.open("rb") as file:
        connection.sock.sendfile(file)
    assert connection.getresponse().status == 200
    connection.close()


def _copy_and_hash(source: Path) -> float:
    """Measure what the machine can do: one copy and one pass of sha256."""
    copy = source.with_suffix(".copy")
    _touchmemory(source)
    began = time.perf_counter()
    shutil.copyfile(source, copy)
    with copy.open("rb") as file:
        hashlib.file_digest(file, "sha256")
    seconds = time.perf_counter() - began
    copy.unlink()
    return SIZE / MIB / seconds


def _touchmemory(source: Path) -> None:
    """Touch the memory first, for both sides: a virtual machine may have to get it from its host."""
    spare = source.with_suffix(".spare")
    shutil.copyfile(source, spare)
    spare.unlink()


def _write(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"%PDF-1.7\n".ljust(MIB, b"\0"))
        for number in range(1, SIZE // MIB):
            file.write(number.to_bytes(4, "big") * (MIB // 4))


def memory(pid: int, *, peak: bool = False) -> int:
    """Return the bytes that a process holds, or held at its peak."""
    name = "VmHWM:" if peak else "VmRSS:"
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
