"""What an import leaves in the library: its files in the order that was chosen, and scans as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nexus.settings import Settings
from tests.kit import documents
from tests.kit.http import Caller, data
from tests.kit.http_imports import SENTENCE, open_batch, stage_file, wait_for_import
from tests.kit.settings import make_settings

pytestmark = [pytest.mark.wall_clock, pytest.mark.usefixtures("installed_extractors")]
SCAN = documents.pdf("")


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return make_settings(database_url, tmp_path / "data")


def imported(me: Caller, files: dict[str, bytes], order: list[str] | None = None) -> dict[str, Any]:
    batch = open_batch(me)
    ids = {name: data(stage_file(me, batch, name, body))["id"] for name, body in files.items()}
    if order is not None:
        data(me.put(f"/imports/batches/{batch}/order", json={"source_ids": [ids[name] for name in order]}))
    data(me.post(f"/imports/batches/{batch}/start"))
    return wait_for_import(me, "COMPLETE", "PAUSED")


def listed(me: Caller, done: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = data(me.get("/media", params={"library_id": done["library_id"]}))["items"]
    return found


def test_the_library_lists_an_import_in_the_order_that_was_chosen(me: Caller) -> None:
    files = {f"{place}.txt": f"Number {place}. {SENTENCE * 9}".encode() for place in range(5)}
    order = ["3.txt", "0.txt", "4.txt", "1.txt", "2.txt"]
    done = imported(me, files, order)
    assert [item["file_name"] for item in listed(me, done)] == order
    later = imported(me, {"later.txt": f"Later. {SENTENCE * 9}".encode(), "3.txt": files["3.txt"]})
    assert [item["file_name"] for item in listed(me, later)] == ["later.txt", *order], "what was there stays"


def test_a_scan_is_kept_as_a_file(me: Caller) -> None:
    done = imported(me, {"scan.pdf": SCAN, "text.txt": (SENTENCE * 9).encode()})
    assert done["status"] == "COMPLETE"
    assert [line["outcome"] for line in done["lines"]] == ["committed", "committed"]
    assert "kept as a file" in done["lines"][0]["message"]
    scan, text = listed(me, done)
    assert (scan["processing_status"], scan["last_error_code"]) == ("failed", "E_PDF_NO_TEXT")
    assert (scan["capabilities"]["can_read"], scan["capabilities"]["can_quote"]) == (True, False)
    assert text["processing_status"] == "ready_for_reading"
    again = imported(me, {"scan.pdf": SCAN})
    assert [line["outcome"] for line in again["lines"]] == ["duplicate"]
    assert len(listed(me, again)) == 2
