"""`GET /search` and its page over HTTP: what they answer, and that nothing that is sent breaks them."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.kit.finding import count_words_now, publish
from tests.kit.http import Caller, Site, data, problem

BOATS = "The boats leave the harbour at night, when the lanterns are lit."
HUGE = "boat " * 1500


def test_an_answer_has_the_items_with_passages_marks_and_links(site: Site, me: Caller) -> None:
    media_id = publish(site.app, me.user, BOATS, title="Boats at night")
    found = data(me.get("/search", params={"q": "lanterns boats"}))
    (item,) = found["items"]
    (passage,) = item["passages"]
    assert item["media"]["id"] == str(media_id)
    assert 0 < item["score"] <= 1
    assert passage["text"] == BOATS[passage["start"] : passage["end"]]
    assert [passage["text"][first:last] for first, last in passage["marks"]] == ["boats", "lanterns"]
    assert passage["url"] == f"/items/{media_id}?from=0&mark={passage['start']}-{passage['end']}#mark"
    assert item["title_marks"] == [[0, 5]]
    assert (found["total"], found["next_cursor"], found["by"]) == (1, None, "words")


def test_a_passage_begins_with_a_sentence_if_one_begins_near_its_first_mark(site: Site, me: Caller) -> None:
    long = "Nobody can say when the ferry ran for the first time, or who paid for it. "
    publish(site.app, me.user, long * 4 + BOATS + " " + long * 4)
    (item,) = data(me.get("/search", params={"q": "lanterns harbour"}))["items"]
    assert item["passages"][0]["text"].startswith(BOATS)


def test_pages_follow_each_other_by_their_cursors(site: Site, me: Caller) -> None:
    wanted = {str(publish(site.app, me.user, BOATS)) for _ in range(5)}
    asked: dict[str, Any] = {"q": "boats", "kind": "web_article", "limit": 2}
    seen: list[str] = []
    while True:
        page = data(me.get("/search", params=asked))
        seen += [one["media"]["id"] for one in page["items"]]
        if page["next_cursor"] is None:
            break
        asked["cursor"] = page["next_cursor"]
    assert (len(seen), set(seen)) == (5, wanted)


def test_other_words_are_offered_if_nothing_is_found(site: Site, me: Caller) -> None:
    publish(site.app, me.user, BOATS)
    count_words_now(site.app)
    found = data(me.get("/search", params={"q": "lantrens"}))
    assert (found["items"], found["suggestions"]) == ([], ["lanterns"])


def test_what_others_hold_is_neither_found_nor_offered(site: Site, me: Caller, you: Caller) -> None:
    publish(site.app, you.user, "A text that says zanzibar.")
    count_words_now(site.app)
    for typed in ("zanzibar", "zanzibra"):
        found = data(me.get("/search", params={"q": typed}))
        assert (found["items"], found["suggestions"]) == ([], [])


def test_the_library_of_others_is_not_there(me: Caller, you: Caller) -> None:
    for library in (you.default_library(), str(uuid4())):
        assert problem(me.get("/search", params={"q": "a", "library": library})) == (404, "E_NOT_FOUND")


@pytest.mark.parametrize(
    "typed",
    [
        HUGE,
        "\x00 boats \x01\x1b[31m",
        'boats" OR NEAR(a b) AND * ^ : {x} text:boats',
        "boats' ); DROP TABLE chunks; --",
        "boats & | ! <-> :* \\",
        " ".join(f"site:s{number}.com by:b{number} in:l{number} kind:pdf" for number in range(100)),
        " ".join(f"-w{number}" for number in range(300)),
        '"' * 500,
        "before:9999-99-99 after:0000 after:-1 by: in: kind:nonsense site:%_\\",
        "\ud7ff\ufffe\U0010ffff 🦉 ß İ ﷺ",
        "a" * 5000,
    ],
)
def test_nothing_that_is_typed_breaks_a_search(site: Site, me: Caller, typed: str) -> None:
    publish(site.app, me.user, BOATS)
    assert me.get("/search", params={"q": typed}).status_code == 200
    for path in ("/find", "/"):
        assert me.get(path, params={"q": typed}, headers={"Accept": "text/html"}).status_code < 500


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "nonsense"},
        {"library": "nonsense"},
        {"after": "yesterday"},
        {"before": "\x00"},
        {"site": "a" * 300},
        {"by": "a" * 300},
        {"limit": "0"},
        {"limit": "100000"},
        {"cursor": "nonsense"},
        {"cursor": "A" * 6000},
        {"cursor": "é\x00"},
    ],
)
def test_a_parameter_that_is_wrong_is_refused(me: Caller, given: dict[str, str]) -> None:
    assert me.get("/search", params={"q": "boats", **given}).status_code in {400, 422}


@pytest.mark.parametrize("name", ["site", "by"])
@pytest.mark.parametrize("value", ["\x00", "%", "_\\", "🦉", "'"])
def test_a_parameter_that_is_odd_finds_nothing(site: Site, me: Caller, name: str, value: str) -> None:
    publish(site.app, me.user, BOATS)
    assert data(me.get("/search", params={"q": "boats", name: value}))["items"] == []
