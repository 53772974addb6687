"""Many items at once: selected ones, or all that failed with an error. One refusal stops no other."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.errors import FetchTimeout, FetchUnknownHost, WorkError
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.media import lifecycle
from nexus.states.media import Kind, MediaStatus, Stage
from tests.kit.http import Caller, Site, data, problem
from tests.kit.media import status_of
from tests.kit.sign_ins import cookie_of

SLOW, GONE = FetchTimeout(), FetchUnknownHost()


@pytest.fixture(autouse=True)
def extractors() -> None:
    def extract(source: Source) -> Extraction:
        return Extraction.plain("A title", "A text.")

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract


def failed(app: App, caller: Caller, error: WorkError = SLOW) -> UUID:
    media_id = caller.add()
    with app.sessions.begin() as session:
        claim = lifecycle.worker_start_attempt(session, media_id)
        assert claim is not None
        attempt = claim.processing_attempts
        lifecycle.mark_failed(session, media_id, Stage.EXTRACT, error.code, error.message, attempt)
    return media_id


def test_named_items_are_retried_and_the_others_are_refused_with_a_reason(
    app: App, site: Site, me: Caller
) -> None:
    mine, pending, theirs = failed(app, me), me.add(), failed(app, site.caller())
    given = {"media_ids": [str(one) for one in (mine, pending, theirs, mine)]}
    told = data(me.post("/media/retry", json=given))
    assert told["done"] == [str(mine)]
    assert {one["media_id"]: one["code"] for one in told["refused"]} == {
        str(pending): "E_INVALID_STATE",
        str(theirs): "E_NOT_FOUND",
    }
    assert [status_of(app.sessions, one) for one in (mine, theirs)] == [
        MediaStatus.PENDING,
        MediaStatus.FAILED,
    ]


def test_everything_that_failed_with_an_error_is_retried(app: App, site: Site, me: Caller) -> None:
    slow, gone = [failed(app, me) for _ in range(3)], failed(app, me, GONE)
    theirs = failed(app, site.caller())
    told = data(me.post("/media/retry", json={"error_code": SLOW.code}))
    assert (set(told["done"]), told["refused"]) == ({str(one) for one in slow}, [])
    assert [status_of(app.sessions, one) for one in (gone, theirs)] == [MediaStatus.FAILED] * 2


def test_a_retry_names_items_or_an_error(me: Caller) -> None:
    both = {"media_ids": [str(uuid4())], "error_code": SLOW.code}
    for given in ({}, both, {"media_ids": []}):
        assert problem(me.post("/media/retry", json=given)) == (400, "E_INVALID_REQUEST")


def test_named_items_are_removed(app: App, site: Site, me: Caller) -> None:
    mine, kept, theirs = me.add(), me.add(), site.caller().add()
    told = data(me.post("/media/remove", json={"media_ids": [str(mine), str(theirs)]}))
    assert told["done"] == [str(mine)]
    assert [one["code"] for one in told["refused"]] == ["E_NOT_FOUND"]
    assert [item["id"] for item in data(me.get("/media"))["items"]] == [str(kept)]


def test_the_library_page_retries_and_removes_what_is_selected(app: App, site: Site, me: Caller) -> None:
    browser = site.anyone(Cookie=cookie_of(app.sessions, me.user), Origin=site.url)
    slow, gone, kept = failed(app, me), failed(app, me, GONE), failed(app, me, GONE)
    page = browser.get("/?show=failed").text
    assert all(f'name="chosen" value="{one}"' in page for one in (slow, gone, kept))
    assert page.count("Retry all") == 1, "two items failed with the same error"
    sent = browser.post("/items/retry-failed", data={"error": SLOW.code, "list": "show=failed"})
    assert (sent.status_code, sent.headers["location"]) == (
        303,
        "/?show=failed&done=retried&count=1&refused=0",
    )
    assert status_of(app.sessions, slow) is MediaStatus.PENDING
    sent = browser.post(
        "/items/retry-selected", data={"chosen": [str(gone), str(slow)], "list": "show=failed"}
    )
    assert sent.headers["location"] == "/?show=failed&done=retried&count=1&refused=1"
    said = " ".join(browser.get(sent.headers["location"]).text.split())
    assert "1 item is being retried. 1 could not be retried: open it to see why." in said
    sent = browser.post("/items/delete-selected", data={"chosen": [str(kept), str(slow)]})
    assert sent.headers["location"] == "/?done=removed&count=2&refused=0"
    assert [item["id"] for item in data(me.get("/media"))["items"]] == [str(gone)]
    nothing = browser.post("/items/delete-selected", data={"list": ""}).headers["location"]
    assert "Select items first." in browser.get(nothing).text
