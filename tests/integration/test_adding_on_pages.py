"""Adding on the library page: what a person types is enough, and Nexus finds out what it is."""

from __future__ import annotations

import httpx2
import pytest
from lxml import html

from nexus.app import App
from tests.kit.http import Caller, Site, data, problem
from tests.kit.job_calls import TEXT
from tests.kit.sign_ins import cookie_of


@pytest.fixture
def browser(app: App, site: Site, me: Caller) -> httpx2.Client:
    return site.anyone(Cookie=cookie_of(app.sessions, me.user), Origin=site.url)


def test_the_page_adds_what_was_typed_as_https(browser: httpx2.Client, me: Caller) -> None:
    assert browser.post("/items", data={"url": " example.com/an-article "}).status_code == 303
    (item,) = data(me.get("/media"))["items"]
    assert (item["kind"], item["canonical_url"]) == ("web_article", "https://example.com/an-article")
    refused = me.post("/media/url", json={"kind": "web_article", "url": "example.com/an-article"})
    assert problem(refused) == (400, "E_INVALID_URL"), "the API keeps asking for a scheme"


@pytest.mark.parametrize("more", [{}, {"title": "Boats", "text": TEXT}])
def test_the_desk_takes_what_was_typed_as_https(
    browser: httpx2.Client, me: Caller, more: dict[str, str]
) -> None:
    typed = {"url": " example.com/an-article ", **more}
    assert browser.post("/admin/add-article", data=typed).status_code == 303
    (job,) = me.get("/api/ingestion-jobs").json()["jobs"]
    assert job["canonicalUrl"] == "https://example.com/an-article"
    refused = me.post("/api/ingestion-jobs", json={"url": "example.com/an-article"})
    assert refused.status_code == 400, "the API keeps asking for a scheme"


def test_the_page_finds_the_kind_by_itself(browser: httpx2.Client, me: Caller) -> None:
    asked = html.fromstring(browser.get("/").text).xpath("//form[@action='/items']//*[@name]/@name")
    assert "url" in asked
    assert "kind" not in asked
    browser.post("/items", data={"url": "youtu.be/dQw4w9WgXcQ"})
    (item,) = data(me.get("/media"))["items"]
    assert (item["kind"], item["provider_id"]) == ("video", "dQw4w9WgXcQ")


def test_what_can_not_be_added_comes_back_as_it_was_typed(browser: httpx2.Client) -> None:
    answer = browser.post("/items", data={"url": "no address"})
    assert (answer.status_code, 'value="no address"' in answer.text) == (400, True)


def test_a_text_file_is_uploaded_on_the_page(browser: httpx2.Client, site: Site, me: Caller) -> None:
    body = b"# Boats\n\nThey left the harbour at noon."
    fields = {"filename": "notes.md", "content_type": "text/plain", "size_bytes": len(body)}
    begun = data(browser.post("/items/upload", json={"kind": "text", **fields}))
    sent = site.anyone().put(begun["upload_url"], content=body, headers=begun["upload_headers"])
    assert data(sent) == {"done": True}
    data(browser.post(f"/items/{begun['media_id']}/ingest"))
    (item,) = data(me.get("/media"))["items"]
    assert (item["kind"], item["title"], item["file_size"]) == ("text", "notes", len(body))
    refused = me.post("/media/upload/init", json={"kind": "text", **fields})
    assert problem(refused) == (400, "E_INVALID_KIND"), "the API takes PDFs and EPUBs alone"


def test_a_file_that_is_no_text_is_refused(browser: httpx2.Client, site: Site) -> None:
    body = b"\x00\x01\x02 not a text"
    fields = {"filename": "notes.txt", "content_type": "text/plain", "size_bytes": len(body)}
    begun = data(browser.post("/items/upload", json={"kind": "text", **fields}))
    site.anyone().put(begun["upload_url"], content=body, headers=begun["upload_headers"])
    refused = browser.post(f"/items/{begun['media_id']}/ingest")
    assert problem(refused) == (400, "E_INVALID_FILE_TYPE")
