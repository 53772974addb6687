"""Imports as clients of the API make them."""

from __future__ import annotations

from typing import Any

import httpx2

from tests.kit.http import Caller, data
from tests.kit.waiting import eventually

SENTENCE = "The ferry left the harbour at noon and came back in the evening, as it does every day. "
TEXT = (SENTENCE * 20).encode()


def open_batch(me: Caller, name: str = "Research") -> str:
    return str(data(me.post("/imports/batches", json={"name": name}))["id"])


def stage_file(me: Caller, batch: str, name: str, body: bytes) -> httpx2.Response:
    return me.post(f"/imports/batches/{batch}/sources", params={"name": name}, content=body)


def import_state(me: Caller) -> dict[str, Any]:
    found: dict[str, Any] = data(me.get("/imports"))
    return found


def wait_for_import(me: Caller, *statuses: str) -> dict[str, Any]:
    found: dict[str, Any] = eventually(
        lambda: shown if (shown := import_state(me))["status"] in statuses else None, f"it is {statuses}"
    )
    return found
