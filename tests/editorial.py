"""Editorial jobs in tests: an app in which nobody works by himself, an editor, and pages to draft stories from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from nexus.app import App, build
from nexus.extract.builtin import READERS
from nexus.extract.registry import load_installed
from nexus.extract.sandbox import Sandbox
from nexus.queue.local import Local
from tests.http import Caller, Site, serve
from tests.integration.test_whole_path import ARTICLE, SENTENCES
from tests.pages import Answer, Pages
from tests.support import SetClock, make_settings

TEXT = " ".join(SENTENCES)


@pytest.fixture
def pages() -> Iterator[Pages]:
    with Pages() as served:
        served["/boats"] = Answer(ARTICLE.encode())
        yield served


@pytest.fixture(scope="module")
def parsers() -> Iterator[Sandbox]:
    with closing(Sandbox(preload=READERS)) as made:
        yield made


@pytest.fixture
def app(database_url: str, tmp_path: Path, pages: Pages, parsers: Sandbox, clock: SetClock) -> Iterator[App]:
    load_installed()
    chosen = make_settings(
        database_url, tmp_path, fetch_allow=(pages.place,), fetch_delay_seconds=0, fetch_per_host=64
    )
    built = build(chosen, clock)
    # Nobody works by himself here: each step is taken when the test asks for it.
    yield replace(built, tools=replace(built.tools, sandbox=parsers), queue=Local())
    built.close()


@pytest.fixture
def site(app: App) -> Iterator[Site]:
    with serve(app) as running:
        yield running


@pytest.fixture
def me(site: Site) -> Caller:
    return site.caller()


def begin(me: Caller, pages: Pages, path: str = "/boats") -> str:
    return str(job_of(me.post("/api/ingestion-jobs", json={"url": pages.url(path)}))["id"])


def entered(me: Caller, text: str = TEXT) -> str:
    return str(job_of(me.post("/api/ingestion-jobs", json={"title": "Boats", "text": text}))["id"])


def ready(me: Caller, pages: Pages) -> str:
    job_id = begin(me, pages)
    call(me, job_id, "fetch")
    call(me, job_id, "extract")
    return job_id


def job_of(answer: httpx2.Response) -> dict[str, Any]:
    """The job after a step that was taken, whatever came of it."""
    body = answer.json()
    assert answer.status_code == 200, body
    job: dict[str, Any] = body["job"]
    assert body["success"] == ("error" not in body)
    return job


def call(me: Caller, job_id: str, step: str, **body: object) -> httpx2.Response:
    return me.post(f"/api/ingestion-jobs/{job_id}/{step}", json=body or None)


def events(me: Caller, job_id: str) -> list[str]:
    return [entry["event"] for entry in me.get(f"/api/ingestion-jobs/{job_id}").json()["history"]]
