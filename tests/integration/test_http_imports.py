"""Imports over HTTP: staged, ordered, started, paused and resumed, and followed without asking again."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import httpx2
import pytest

from nexus.app import App, build
from nexus.extract.builtin import READERS
from nexus.extract.sandbox import Sandbox
from nexus.imports.flags import Flags
from nexus.web.http import auth
from tests import documents
from tests.http import PATIENCE, Caller, Site, data, problem, serve
from tests.processes import eventually
from tests.support import make_settings

SENTENCE = "The ferry left the harbour at noon and came back in the evening, as it does every day. "
TEXT = (SENTENCE * 20).encode()


@pytest.fixture(scope="module")
def parsers() -> Iterator[Sandbox]:
    with closing(Sandbox(preload=READERS)) as made:
        yield made


@pytest.fixture
def app(sqlite_url: str, tmp_path: Path) -> Iterator[App]:
    built = build(make_settings(sqlite_url, tmp_path / "data"))
    yield built
    built.close()


@pytest.fixture
def site(app: App) -> Iterator[Site]:
    with serve(app) as running:
        yield running


@pytest.fixture
def me(site: Site) -> Caller:
    return site.caller()


def opened(me: Caller, name: str = "Research") -> str:
    return str(data(me.post("/imports/batches", json={"name": name}))["id"])


def stage(me: Caller, batch: str, name: str, body: bytes) -> httpx2.Response:
    return me.post(f"/imports/batches/{batch}/sources", params={"name": name}, content=body)


def now(me: Caller) -> dict[str, Any]:
    found: dict[str, Any] = data(me.get("/imports"))
    return found


def until(me: Caller, *statuses: str) -> dict[str, Any]:
    found: dict[str, Any] = eventually(
        lambda: shown if (shown := now(me))["status"] in statuses else None, f"it is {statuses}"
    )
    return found


def test_files_become_a_library(me: Caller) -> None:
    batch = opened(me)
    for name, body in (("one.txt", TEXT), ("two.pdf", documents.pdf(SENTENCE))):
        assert data(stage(me, batch, name, body))["name"] == name
    data(me.post(f"/imports/batches/{batch}/start"))
    done = until(me, "COMPLETE", "PAUSED")
    assert [line["outcome"] for line in done["lines"]] == ["committed", "committed"], done
    held = data(me.get(f"/libraries/{done['library_id']}/media"))["items"]
    assert {one["processing_status"] for one in held} == {"ready_for_reading"}
    assert done["batches"] == []


def test_without_a_name_it_is_the_default_library(me: Caller) -> None:
    batch = data(me.post("/imports/batches", json={}))
    assert batch["library_id"] == me.default_library()
    assert data(me.post("/imports/batches", json={}))["id"] == batch["id"]


def test_files_are_put_in_order_and_taken_out(me: Caller) -> None:
    batch = opened(me)
    ids = [data(stage(me, batch, f"{n}.txt", TEXT + bytes([n + 48])))["id"] for n in range(3)]
    ordered = data(me.put(f"/imports/batches/{batch}/order", json={"source_ids": ids[::-1]}))
    assert [source["id"] for source in ordered["sources"]] == ids[::-1]
    assert problem(me.put(f"/imports/batches/{batch}/order", json={"source_ids": ids[:2]})) == (
        400,
        "E_INVALID_REQUEST",
    )
    left = data(me.delete(f"/imports/batches/{batch}/sources/{ids[0]}"))["batches"][0]["sources"]
    assert [source["id"] for source in left] == ids[:0:-1]
    assert problem(me.delete(f"/imports/batches/{batch}/sources/{ids[0]}")) == (404, "E_NOT_FOUND")
    assert data(me.delete(f"/imports/batches/{batch}"))["batches"] == []


@pytest.mark.parametrize(
    ("name", "body", "status", "code"),
    [
        ("a.docx", b"PK", 400, "E_INVALID_FILE_TYPE"),
        ("a.pdf", b"no pdf", 400, "E_INVALID_FILE_TYPE"),
        ("a.txt", b"", 400, "E_INVALID_REQUEST"),
        ("", TEXT, 400, "E_INVALID_REQUEST"),
    ],
)
def test_what_is_no_book_is_refused_and_leaves_nothing(
    me: Caller, app: App, name: str, body: bytes, status: int, code: str
) -> None:
    batch = opened(me)
    assert problem(stage(me, batch, name, body)) == (status, code)
    assert now(me)["batches"][0]["sources"] == []
    assert list(app.imports.room().iterdir()) == []


def test_a_file_that_is_too_large_is_refused_while_it_comes(sqlite_url: str, tmp_path: Path) -> None:
    built = build(make_settings(sqlite_url, tmp_path / "data", max_pdf_mib=1, max_epub_mib=1))
    with serve(built) as site:
        me = site.caller()
        batch = opened(me)
        assert problem(stage(me, batch, "a.txt", b"x" * (2 * 2**20))) == (413, "E_FILE_TOO_LARGE")
        assert list(built.imports.room().iterdir()) == []
    built.close()


def test_a_file_that_fails_pauses_it_and_the_rest_goes_on_without_it(me: Caller) -> None:
    batch = opened(me)
    stage(me, batch, "good.txt", TEXT)
    bad = data(stage(me, batch, "bad.pdf", b"%PDF-1.4 nothing else"))["id"]
    data(me.post(f"/imports/batches/{batch}/start"))
    paused = until(me, "PAUSED")
    (failed,) = [one for one in paused["batches"][0]["sources"] if one["outcome"] == "failed"]
    assert (failed["id"], failed["code"]) == (bad, "E_PDF_DAMAGED")
    assert data(me.get(f"/imports/batches/{batch}/leave"))["should_warn"]
    data(me.delete(f"/imports/batches/{batch}/sources/{bad}"))
    data(me.post("/imports/attempt/resume"))
    assert until(me, "COMPLETE")["library_id"]
    assert data(me.get(f"/imports/batches/{batch}/leave"))["safe"]


def test_a_file_that_fails_is_replaced_in_its_place(me: Caller, app: App) -> None:
    batch = opened(me)
    bad = data(stage(me, batch, "bad.pdf", b"%PDF-1.4 nothing else"))["id"]
    stage(me, batch, "last.txt", TEXT)
    data(me.post(f"/imports/batches/{batch}/start"))
    until(me, "PAUSED")
    place = f"/imports/batches/{batch}/sources/{bad}"
    assert problem(me.put(place, params={"name": "a.docx"}, content=b"PK")) == (400, "E_INVALID_FILE_TYPE")
    good = data(me.put(place, params={"name": "good.pdf"}, content=documents.pdf(SENTENCE)))
    assert (good["id"] != bad, good["outcome"]) == (True, "waiting")
    assert [one["name"] for one in now(me)["batches"][0]["sources"]] == ["good.pdf", "last.txt"]
    assert len(list(app.imports.room().iterdir())) == 2
    assert problem(me.put(place, params={"name": "c.txt"}, content=TEXT)) == (404, "E_NOT_FOUND")
    data(me.post("/imports/attempt/resume"))
    assert [one["name"] for one in until(me, "COMPLETE")["lines"]] == ["good.pdf", "last.txt"]
    assert list(app.imports.room().iterdir()) == []


@pytest.mark.parametrize("name", ["", "   ", "a\0b"])
def test_a_library_that_no_name_fits_is_refused_before_anything_is_staged(me: Caller, name: str) -> None:
    assert problem(me.post("/imports/batches", json={"name": name})) == (400, "E_INVALID_REQUEST")


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_what_makes_no_sense_is_refused(me: Caller, verb: str) -> None:
    assert problem(me.post(f"/imports/attempt/{verb}")) == (409, "E_INVALID_STATE")
    assert problem(me.post(f"/imports/batches/{uuid4()}/start")) == (404, "E_NOT_FOUND")
    assert problem(me.post(f"/imports/batches/{opened(me)}/start")) == (400, "E_INVALID_REQUEST")


def test_an_import_that_can_not_be_told_to_stop_runs_on_and_both_doors_say_so(
    site: Site, me: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, gate, real = threading.Event(), threading.Event(), Sandbox.read

    def held(*given: Any, **named: Any) -> Any:
        reading.set()
        gate.wait(PATIENCE)
        return real(*given, **named)

    monkeypatch.setattr(Sandbox, "read", held)
    batch = opened(me)
    stage(me, batch, "one.txt", TEXT)
    data(me.post(f"/imports/batches/{batch}/start"))
    assert reading.wait(PATIENCE)
    cookie = f"{auth.COOKIE}={auth.session_token(site.app.settings, me.user)}"
    page = site.anyone(Cookie=cookie, Origin=site.url)
    with monkeypatch.context() as deaf:
        deaf.setattr(Flags, "raise_", Mock(side_effect=MemoryError))
        assert problem(me.post("/imports/attempt/pause")) == (500, "E_CANCELLATION_FAILED")
        shown = page.post("/import/pause")
    assert (shown.status_code, "is still running" in shown.text) == (500, True)
    assert 'action="/import/pause"' in shown.text
    assert now(me)["status"] == "RUNNING"
    data(me.post("/imports/attempt/pause"))
    gate.set()
    until(me, "PAUSED")


def test_what_was_discarded_is_not_shown_any_more(me: Caller) -> None:
    batch = opened(me)
    stage(me, batch, "good.txt", TEXT)
    stage(me, batch, "bad.pdf", b"%PDF-1.4 nothing else")
    data(me.post(f"/imports/batches/{batch}/start"))
    until(me, "PAUSED")
    left = data(me.delete(f"/imports/batches/{batch}"))
    assert (left["status"], left["share"], left["lines"], left["batch_id"]) == ("IDLE", 0.0, [], None)


def test_a_form_with_a_file_in_it_is_not_taken_for_the_file(me: Caller) -> None:
    place = f"/imports/batches/{opened(me)}/sources"
    sent = me.post(place, params={"name": "a.txt"}, files={"file": ("a.txt", TEXT)})
    assert problem(sent) == (400, "E_INVALID_REQUEST")


def test_each_user_has_his_own(site: Site, me: Caller) -> None:
    batch = opened(me)
    other = site.caller()
    assert now(other)["batches"] == []
    assert problem(stage(other, batch, "a.txt", TEXT)) == (404, "E_NOT_FOUND")
    assert problem(other.post(f"/imports/batches/{batch}/start")) == (404, "E_NOT_FOUND")


def test_only_who_administers_a_library_imports_into_it(site: Site, me: Caller) -> None:
    library = me.library()
    member = site.caller()
    member.get("/libraries")
    me.let_in(library, member.user)
    assert problem(member.post("/imports/batches", json={"library_id": library})) == (403, "E_FORBIDDEN")
    assert problem(site.caller().post("/imports/batches", json={"library_id": library})) == (
        404,
        "E_NOT_FOUND",
    )


def test_a_second_process_on_the_same_folder_says_where_imports_are(site: Site, me: Caller, app: App) -> None:
    now(me)
    second = build(app.settings)
    with serve(second) as other:
        answer = other.caller(me.user).get("/imports")
        assert problem(answer) == (409, "E_CONFLICT")
        assert "another process" in answer.json()["error"]["message"]
    second.close()


def test_progress_comes_by_itself_on_the_stream_of_events(site: Site, me: Caller) -> None:
    batch = opened(me)
    stage(me, batch, "one.txt", TEXT)
    with me.stream("GET", "/events") as answer:
        data(site.caller(me.user).post(f"/imports/batches/{batch}/start"))
        told = (json.loads(line[6:]) for line in answer.iter_lines() if line.startswith('data: {"status"'))
        last = next(one for one in told if one["status"] == "COMPLETE")
    assert last["lines"][0]["outcome"] == "committed"
