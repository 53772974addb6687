"""Imports over HTTP: staged, ordered, started, paused and resumed, and followed without asking again."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import pytest

from nexus.app import App, build
from nexus.extract.sandbox import Sandbox
from nexus.imports.attempts import StopFlags
from nexus.settings import Settings
from nexus.web.http.routing import MOST_BODY
from tests.kit import documents
from tests.kit.http import PATIENCE, Caller, Site, data, problem, serve
from tests.kit.http_imports import SENTENCE, TEXT, import_state, open_batch, stage_file, wait_for_import
from tests.kit.settings import make_settings
from tests.kit.sign_ins import cookie_of

pytestmark = [pytest.mark.wall_clock, pytest.mark.usefixtures("installed_extractors")]


@pytest.fixture
def settings(sqlite_url: str, tmp_path: Path) -> Settings:
    return make_settings(sqlite_url, tmp_path / "data")


def test_imported_files_become_a_library(me: Caller) -> None:
    batch = open_batch(me)
    for name, body in (("one.txt", TEXT), ("two.pdf", documents.pdf(SENTENCE))):
        assert data(stage_file(me, batch, name, body))["name"] == name
    data(me.post(f"/imports/batches/{batch}/start"))
    done = wait_for_import(me, "COMPLETE", "PAUSED")
    assert [line["outcome"] for line in done["lines"]] == ["committed", "committed"], done
    held = data(me.get(f"/libraries/{done['library_id']}/media"))["items"]
    assert {one["processing_status"] for one in held} == {"ready_for_reading"}
    assert done["batches"] == []


def test_an_import_without_a_name_goes_into_the_default_library(me: Caller) -> None:
    batch = data(me.post("/imports/batches", json={}))
    assert batch["library_id"] == me.default_library()
    assert data(me.post("/imports/batches", json={}))["id"] == batch["id"]


def test_staged_files_are_reordered_and_removed(me: Caller) -> None:
    batch = open_batch(me)
    ids = [data(stage_file(me, batch, f"{n}.txt", TEXT + bytes([n + 48])))["id"] for n in range(3)]
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
def test_an_unsupported_file_is_refused_and_leaves_nothing(
    me: Caller, app: App, name: str, body: bytes, status: int, code: str
) -> None:
    batch = open_batch(me)
    assert problem(stage_file(me, batch, name, body)) == (status, code)
    assert import_state(me)["batches"][0]["sources"] == []
    assert list(app.imports.staging_folder().iterdir()) == []


def test_a_file_that_is_too_large_is_refused_while_it_arrives(sqlite_url: str, tmp_path: Path) -> None:
    built = build(make_settings(sqlite_url, tmp_path / "data", max_pdf_mib=1, max_epub_mib=1))
    with serve(built) as site:
        me = site.caller()
        batch = open_batch(me)
        assert problem(stage_file(me, batch, "a.txt", b"x" * (2 * 2**20))) == (413, "E_FILE_TOO_LARGE")
        assert list(built.imports.staging_folder().iterdir()) == []
    built.close()


def test_a_failed_file_pauses_the_import_and_the_rest_goes_on_without_it(me: Caller) -> None:
    batch = open_batch(me)
    stage_file(me, batch, "good.txt", TEXT)
    bad = data(stage_file(me, batch, "bad.pdf", b"%PDF-1.4 nothing else"))["id"]
    data(me.post(f"/imports/batches/{batch}/start"))
    paused = wait_for_import(me, "PAUSED")
    (failed,) = [one for one in paused["batches"][0]["sources"] if one["outcome"] == "failed"]
    assert (failed["id"], failed["code"]) == (bad, "E_PDF_DAMAGED")
    assert data(me.get(f"/imports/batches/{batch}/leave"))["should_warn"]
    data(me.delete(f"/imports/batches/{batch}/sources/{bad}"))
    data(me.post("/imports/attempt/resume"))
    assert wait_for_import(me, "COMPLETE")["library_id"]
    assert data(me.get(f"/imports/batches/{batch}/leave"))["safe"]


def test_a_failed_file_can_be_replaced_in_its_place(me: Caller, app: App) -> None:
    batch = open_batch(me)
    bad = data(stage_file(me, batch, "bad.pdf", b"%PDF-1.4 nothing else"))["id"]
    stage_file(me, batch, "last.txt", TEXT)
    data(me.post(f"/imports/batches/{batch}/start"))
    wait_for_import(me, "PAUSED")
    place = f"/imports/batches/{batch}/sources/{bad}"
    assert problem(me.put(place, params={"name": "a.docx"}, content=b"PK")) == (400, "E_INVALID_FILE_TYPE")
    good = data(me.put(place, params={"name": "good.pdf"}, content=documents.pdf(SENTENCE)))
    assert (good["id"] != bad, good["outcome"]) == (True, "waiting")
    assert [one["name"] for one in import_state(me)["batches"][0]["sources"]] == ["good.pdf", "last.txt"]
    assert len(list(app.imports.staging_folder().iterdir())) == 2
    assert problem(me.put(place, params={"name": "c.txt"}, content=TEXT)) == (404, "E_NOT_FOUND")
    data(me.post("/imports/attempt/resume"))
    assert [one["name"] for one in wait_for_import(me, "COMPLETE")["lines"]] == ["good.pdf", "last.txt"]
    assert list(app.imports.staging_folder().iterdir()) == []


def test_a_file_of_an_import_may_be_larger_than_other_requests(me: Caller) -> None:
    batch = open_batch(me)
    large = TEXT * (5 * MOST_BODY // len(TEXT))
    first = data(stage_file(me, batch, "first.txt", large))
    place = f"/imports/batches/{batch}/sources/{first['id']}"
    second = data(me.put(place, params={"name": "second.txt"}, content=large))
    assert (first["size"], second["size"]) == (len(large), len(large))


@pytest.mark.parametrize("name", ["", "   ", "a\0b"])
def test_an_invalid_library_name_is_refused_before_anything_is_staged(me: Caller, name: str) -> None:
    assert problem(me.post("/imports/batches", json={"name": name})) == (400, "E_INVALID_REQUEST")


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_malformed_import_requests_are_refused(me: Caller, verb: str) -> None:
    assert problem(me.post(f"/imports/attempt/{verb}")) == (409, "E_INVALID_STATE")
    assert problem(me.post(f"/imports/batches/{uuid4()}/start")) == (404, "E_NOT_FOUND")
    assert problem(me.post(f"/imports/batches/{open_batch(me)}/start")) == (400, "E_INVALID_REQUEST")


def test_an_unstoppable_import_runs_on_and_api_and_page_say_so(
    site: Site, me: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, gate, real = threading.Event(), threading.Event(), Sandbox.read

    def held(*given: Any, **named: Any) -> Any:
        reading.set()
        gate.wait(PATIENCE)
        return real(*given, **named)

    monkeypatch.setattr(Sandbox, "read", held)
    batch = open_batch(me)
    stage_file(me, batch, "one.txt", TEXT)
    data(me.post(f"/imports/batches/{batch}/start"))
    assert reading.wait(PATIENCE)
    cookie = cookie_of(site.app.sessions, me.user)
    page = site.anyone(Cookie=cookie, Origin=site.url)
    with monkeypatch.context() as deaf:
        deaf.setattr(StopFlags, "raise_", Mock(side_effect=MemoryError))
        assert problem(me.post("/imports/attempt/pause")) == (500, "E_CANCELLATION_FAILED")
        shown = page.post("/import/pause")
    assert (shown.status_code, "is still running" in shown.text) == (500, True)
    assert 'action="/import/pause"' in shown.text
    assert import_state(me)["status"] == "RUNNING"
    data(me.post("/imports/attempt/pause"))
    gate.set()
    wait_for_import(me, "PAUSED")


def test_a_discarded_import_is_no_longer_shown(me: Caller) -> None:
    batch = open_batch(me)
    stage_file(me, batch, "good.txt", TEXT)
    stage_file(me, batch, "bad.pdf", b"%PDF-1.4 nothing else")
    data(me.post(f"/imports/batches/{batch}/start"))
    wait_for_import(me, "PAUSED")
    left = data(me.delete(f"/imports/batches/{batch}"))
    assert (left["status"], left["share"], left["lines"], left["batch_id"]) == ("IDLE", 0.0, [], None)


def test_a_form_with_a_file_in_it_is_not_taken_for_the_file(me: Caller) -> None:
    place = f"/imports/batches/{open_batch(me)}/sources"
    sent = me.post(place, params={"name": "a.txt"}, files={"file": ("a.txt", TEXT)})
    assert problem(sent) == (400, "E_INVALID_REQUEST")


def test_each_user_has_their_own_import(site: Site, me: Caller) -> None:
    batch = open_batch(me)
    other = site.caller()
    assert import_state(other)["batches"] == []
    assert problem(stage_file(other, batch, "a.txt", TEXT)) == (404, "E_NOT_FOUND")
    assert problem(other.post(f"/imports/batches/{batch}/start")) == (404, "E_NOT_FOUND")


def test_only_admins_of_a_library_can_import_into_it(site: Site, me: Caller) -> None:
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
    import_state(me)
    second = build(app.settings)
    with serve(second) as other:
        answer = other.caller(me.user).get("/imports")
        assert problem(answer) == (409, "E_CONFLICT")
        assert "Another process" in answer.json()["error"]["message"]
    second.close()


def test_progress_of_an_import_arrives_on_the_stream_of_events(site: Site, me: Caller) -> None:
    batch = open_batch(me)
    stage_file(me, batch, "one.txt", TEXT)
    with me.stream("GET", "/events") as answer:
        data(site.caller(me.user).post(f"/imports/batches/{batch}/start"))
        told = (json.loads(line[6:]) for line in answer.iter_lines() if line.startswith('data: {"status"'))
        last = next(one for one in told if one["status"] == "COMPLETE")
    assert last["lines"][0]["outcome"] == "committed"
