"""The text of an item over the API: paged by bytes, and never whole in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.extract import Extraction, Fragment
from nexus.media import fragments, versions
from nexus.media.fragments import PAGE_BYTES, SLICE, LargeFragment
from nexus.media.lifecycle import mark_ready_for_reading
from nexus.media.texts import Found
from nexus.web.api import texts
from nexus.web.api.schemas import FragmentPage
from tests.kit.http import Caller, data, problem
from tests.kit.media import new_media, start_extraction

#: Whatever JSON writes in another way, and characters of one to four bytes.
ODD = 'He said: "näh" \\ \u20ac \U0001f6a2 \x01\u2028<i>\n'


def written(app: App, user: UUID, *pieces: tuple[str, str | None]) -> UUID:
    media_id = new_media(app, user)
    attempt = start_extraction(app, media_id)
    made = tuple(Fragment(text=text, html=html) for text, html in pieces)
    with app.sessions.begin() as session:
        assert mark_ready_for_reading(
            session, media_id, attempt, Found(Extraction(title="A book", fragments=made), "tests")
        )
    return media_id


def pages_of(me: Caller, address: str) -> Iterator[dict[str, Any]]:
    page = data(me.get(address))
    yield page
    while page["next_cursor"]:
        page = data(me.get(address, params={"cursor": page["next_cursor"]}))
        yield page


def size_of(page: dict[str, Any]) -> int:
    return sum(len((one["text"] + (one["html"] or "")).encode()) for one in page["items"])


@pytest.mark.parametrize("address", ["/media/{}/fragments", "/media/{}/revisions/1"])
def test_a_page_of_text_ends_after_so_many_bytes(app: App, me: Caller, address: str) -> None:
    """A request for fifty chapters was answered with the whole book."""
    me.get("/libraries")
    chapter = "€" * (PAGE_BYTES // 10)
    media_id = written(app, me.user, *[(chapter, None)] * 10)
    pages = list(pages_of(me, address.format(media_id)))
    assert max(map(size_of, pages)) <= PAGE_BYTES
    assert [one["position"] for page in pages for one in page["items"]] == list(range(10))
    assert len(pages) == 4


def test_html_counts_like_text(app: App, me: Caller) -> None:
    me.get("/libraries")
    words = "a" * (PAGE_BYTES // 3)
    media_id = written(app, me.user, *[(words, f"<p>{words}</p>")] * 2)
    assert [len(page["items"]) for page in pages_of(me, f"/media/{media_id}/fragments")] == [1, 1]


@pytest.mark.parametrize("address", ["/media/{}/fragments", "/media/{}/revisions/1"])
def test_a_fragment_larger_than_a_page_arrives_whole(app: App, me: Caller, address: str) -> None:
    me.get("/libraries")
    text = (ODD * (2 * SLICE // len(ODD))).strip()
    media_id = written(app, me.user, ("before", None), (text, None), ("after", None))
    answers = list(pages_of(me, address.format(media_id)))
    assert [[one["position"] for one in page["items"]] for page in answers] == [[0], [1], [2]]
    (large,) = answers[1]["items"]
    assert (large["text"], large["html"]) == (text, None)
    assert set(large) == set(answers[0]["items"][0])
    assert answers[1].keys() == answers[0].keys()


def test_large_html_arrives_whole(app: App, me: Caller) -> None:
    me.get("/libraries")
    words = "word " * (SLICE // 5) + "end"
    media_id = written(app, me.user, (words, f"<p>{words}</p>"))
    ((large,),) = [page["items"] for page in pages_of(me, f"/media/{media_id}/fragments")]
    assert (large["text"], large["html"]) == (words, f"<p>{words}</p>")


def test_a_large_fragment_is_read_as_its_reader_takes_it(
    app: App, me: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight answers that nobody read took 700 MB."""
    me.get("/libraries")
    media_id = written(app, me.user, ("x" * (10 * SLICE), None))
    read: list[str] = []
    real = LargeFragment._slices

    def slices(large: LargeFragment, *given: Any) -> Iterator[str]:
        for piece in real(large, *given):
            read.append(piece)
            yield piece

    monkeypatch.setattr(LargeFragment, "_slices", slices)
    with app.sessions.read() as session:
        page = fragments.read_text_page(session, versions.view_version(session, media_id, me.user, None))
    assert page.large is not None
    pieces = texts._in_pieces(app.sessions, FragmentPage.model_validate(page), page.large)
    for _ in range(3):
        next(pieces)
    assert len(read) == 2
    assert {len(piece) for piece in read} == {SLICE}


def test_pictures_of_a_large_fragment_keep_no_address_of_another_site(
    app: App, me: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a slice ends, also in the middle of a tag."""
    me.get("/libraries")
    picture = '<img src="https://example.com/a.png" alt="A post">'
    html = f"<p>{picture * 20}{'x' * fragments.PAGE_BYTES}{picture * 20}</p>"
    media_id = written(app, me.user, ("x" * fragments.PAGE_BYTES, html))
    for size in (SLICE, 521):
        monkeypatch.setattr(fragments, "SLICE", size)
        ((large,),) = [page["items"] for page in pages_of(me, f"/media/{media_id}/fragments")]
        assert "https://" not in large["html"]
        assert large["html"].count('<img alt="A post">') == 40


def test_an_empty_text_and_a_cursor_past_the_end_give_an_empty_page(app: App, me: Caller) -> None:
    me.get("/libraries")
    media_id = written(app, me.user, ("all", None))
    page = data(me.get(f"/media/{media_id}/fragments", params={"cursor": fragments.cursor_after(7)}))
    assert (page["items"], page["next_cursor"]) == ([], None)
    assert problem(me.get(f"/media/{uuid4()}/fragments")) == (404, "E_NOT_FOUND")
