"""Editorial jobs as clients of the API begin and move them."""

from __future__ import annotations

from typing import Any

import httpx2

from tests.kit.articles import SENTENCES
from tests.kit.http import Caller
from tests.kit.servers.web_pages import Pages

TEXT = " ".join(SENTENCES)
QUOTE = TEXT.split(". ")[0]
SAID = {
    "headline": "Boats leave the harbour again",
    "headline_quote": QUOTE,
    "summary": "After a long winter the boats have left the harbour again, and the town has come to see them.",
    "summary_quotes": [QUOTE],
    "what_happened": [
        {"text": "The boats have left the harbour.", "quote": QUOTE},
        {"text": "The mayor waved a flag at them.", "quote": "The mayor waved a large flag from the pier"},
    ],
    "background": [],
}


def begin_job(me: Caller, pages: Pages, path: str = "/boats") -> str:
    return str(job_of(me.post("/api/ingestion-jobs", json={"url": pages.url(path)}))["id"])


def enter_job(me: Caller, text: str = TEXT) -> str:
    return str(job_of(me.post("/api/ingestion-jobs", json={"title": "Boats", "text": text}))["id"])


def ready_job(me: Caller, pages: Pages) -> str:
    job_id = begin_job(me, pages)
    call_step(me, job_id, "fetch")
    call_step(me, job_id, "extract")
    return job_id


def job_of(answer: httpx2.Response) -> dict[str, Any]:
    """The job after a step that was taken, whatever came of it."""
    body = answer.json()
    assert answer.status_code == 200, body
    job: dict[str, Any] = body["job"]
    assert body["success"] == ("error" not in body)
    return job


def call_step(me: Caller, job_id: str, step: str, **body: object) -> httpx2.Response:
    return me.post(f"/api/ingestion-jobs/{job_id}/{step}", json=body or None)


def job_event_names(me: Caller, job_id: str) -> list[str]:
    return [entry["event"] for entry in me.get(f"/api/ingestion-jobs/{job_id}").json()["history"]]
