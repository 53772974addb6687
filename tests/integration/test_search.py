"""What a search finds, and for whom: by words, on both databases."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.errors import InvalidRequest, NotFound
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Facts, Source
from nexus.libraries import catalog, members
from nexus.libraries.access import Role
from nexus.media import deletions, refresh, shelving, versions
from nexus.media.list_filters import Wanted
from nexus.media.searching import finding
from nexus.media.searching.finding import Asked, search_items
from nexus.media.searching.similar import more_like
from nexus.media.shelving import Marks
from nexus.queue.local import LocalQueue
from nexus.search.questions import Filters
from nexus.states.media import Kind
from tests.kit.clock import SetClock
from tests.kit.finding import found_in, hold, ids_found, publish
from tests.kit.media import share_media
from tests.kit.users import new_user
from tests.kit.work import refresh_item

BOATS = "The boats leave the harbour at night, when the tide is high and the lanterns are lit."
BREAD = "Bread needs flour, water, salt and a warm place. The dough rises twice before it is baked."


@pytest.fixture
def ann(app: App) -> UUID:
    return new_user(app)


@pytest.fixture
def bob(app: App) -> UUID:
    return new_user(app)


def test_an_item_is_found_by_a_word_of_its_text_as_soon_as_that_is_committed(app: App, ann: UUID) -> None:
    boats, _ = publish(app, ann, BOATS), publish(app, ann, BREAD)
    assert ids_found(app, ann, "lantern") == [boats]


def test_a_passage_is_cut_from_its_fragment_with_the_words_marked(app: App, ann: UUID) -> None:
    publish(app, ann, "Nothing here.", BOATS)
    (found,) = found_in(app, ann, "harbour tides").items
    (passage,) = found.passages
    assert passage.position == 1
    assert passage.text == BOATS[passage.start : passage.end]
    assert [passage.text[start:end] for start, end in passage.marks] == ["harbour", "tide"]


def test_the_best_item_comes_first_and_scores_most(app: App, ann: UUID) -> None:
    weak = publish(app, ann, f"{BREAD} A harbour is mentioned once. {BREAD}")
    strong = publish(app, ann, BOATS, title="The harbour")
    found = found_in(app, ann, "harbour night").items
    assert [one.view.row.id for one in found] == [strong, weak]
    assert 1 >= found[0].score > found[1].score > 0


def test_a_title_alone_finds_its_item_and_is_marked(app: App, ann: UUID) -> None:
    media_id = publish(app, ann, BREAD, title="On sourdough")
    (found,) = found_in(app, ann, "sourdough").items
    assert (found.view.row.id, found.passages, found.title_marks) == (media_id, [], [(3, 12)])


def test_a_viewers_own_title_is_found_by_them_alone(app: App, ann: UUID, bob: UUID) -> None:
    url = "https://example.com/shared"
    media_id = publish(app, ann, BREAD, url=url)
    hold(app, bob, url)
    with app.sessions.begin() as session:
        shelving.mark_item(session, media_id, ann, Marks(title="Grandmother's secret"))
    assert ids_found(app, ann, "grandmother") == [media_id]
    assert ids_found(app, ann, '"grandmother\'s secret"') == [media_id]
    assert ids_found(app, ann, "dough -secret") == []
    assert ids_found(app, bob, "grandmother") == []
    assert ids_found(app, bob, "dough -secret") == [media_id]


def test_archived_items_are_found(app: App, ann: UUID) -> None:
    media_id = publish(app, ann, BOATS)
    with app.sessions.begin() as session:
        shelving.mark_item(session, media_id, ann, Marks(is_archived=True))
    assert ids_found(app, ann, "boats") == [media_id]


def test_phrases_have_to_occur_and_excluded_words_must_not(app: App, ann: UUID) -> None:
    first = publish(app, ann, "A warm place by the sea.")
    second = publish(app, ann, "The place was warm, and there was fog.")
    assert ids_found(app, ann, '"warm place"') == [first]
    assert ids_found(app, ann, "warm -fog") == [first]
    assert set(ids_found(app, ann, "warm place")) == {first, second}


# ── Who ──


def test_nobody_finds_what_only_others_hold(app: App, ann: UUID, bob: UUID) -> None:
    publish(app, ann, BOATS)
    assert ids_found(app, bob, "boats") == []


def test_a_member_finds_what_a_shared_library_holds_until_they_leave(app: App, ann: UUID, bob: UUID) -> None:
    media_id = publish(app, ann, BOATS)
    library = share_media(app, ann, media_id, (bob, Role.MEMBER))
    assert ids_found(app, bob, "boats") == [media_id]
    with app.sessions.begin() as session:
        members.remove_member(session, library, bob, ann)
    assert ids_found(app, bob, "boats") == []
    assert ids_found(app, ann, "boats") == [media_id]


def test_somebody_who_is_only_invited_finds_nothing(app: App, ann: UUID, bob: UUID) -> None:
    media_id = publish(app, ann, BOATS)
    library = share_media(app, ann, media_id)
    assert ids_found(app, bob, "boats in:Shared") == []
    with pytest.raises(NotFound):
        search_items(app.tools, bob, Asked("boats", wanted=Wanted(library_id=library)))


def test_a_deleted_item_is_gone_from_the_next_search(app: App, ann: UUID) -> None:
    media_id = publish(app, ann, BOATS)
    deletions.delete_media_and_files(app.sessions, app.files, ann, media_id)
    assert ids_found(app, ann, "boats") == []


def _refreshed(app: App, media_id: UUID, user: UUID, text: str) -> None:
    def extract(source: Source) -> Extraction:
        return Extraction.plain("A title", text)

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    refresh.request(app.sessions, LocalQueue(), media_id, user, None)
    assert refresh_item(app.tools, media_id) == "revision 2"


def test_each_viewer_finds_the_revision_that_their_library_holds(app: App, ann: UUID, bob: UUID) -> None:
    url = "https://example.com/changing"
    media_id = publish(app, ann, BOATS, url=url)
    hold(app, bob, url)
    _refreshed(app, media_id, ann, BREAD)
    assert ids_found(app, ann, "dough") == [media_id]
    assert ids_found(app, ann, "boats") == []
    assert ids_found(app, bob, "boats") == [media_id]
    assert ids_found(app, bob, "dough") == []
    versions.use_version(app.sessions, media_id, bob, 2)
    assert ids_found(app, bob, "dough") == [media_id]
    assert ids_found(app, bob, "boats") == []


def test_an_excluded_word_of_an_earlier_revision_excludes_nothing(app: App, ann: UUID) -> None:
    media_id = publish(app, ann, BOATS)
    _refreshed(app, media_id, ann, BREAD)
    assert ids_found(app, ann, "dough -boats") == [media_id]


def test_a_text_that_somebody_entered_is_found_by_them_alone(app: App, ann: UUID, bob: UUID) -> None:
    url = "https://example.com/walled"
    media_id = publish(app, ann, BOATS, url=url)
    hold(app, bob, url)
    share_media(app, ann, media_id, (bob, Role.ADMIN))
    versions.enter_own_text(app.sessions, media_id, ann, "Mine", BREAD)
    assert ids_found(app, ann, "dough") == [media_id]
    assert ids_found(app, bob, "dough") == []
    assert ids_found(app, bob, "boats") == [media_id]


def test_a_revision_that_moves_during_a_search_leaves_no_ghost(
    app: App, ann: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    media_id = publish(app, ann, BOATS)
    real = finding.find_items

    def moved(*given: Any) -> Any:
        hits = real(*given)
        versions.enter_own_text(app.sessions, media_id, ann, "Mine", BREAD)
        return hits

    monkeypatch.setattr(finding, "find_items", moved)
    assert ids_found(app, ann, "boats") == []


# ── Filters ──


def test_filters_narrow_a_search(app: App, ann: UUID, clock: SetClock) -> None:
    old = Facts(byline="Ada Harbour", published="2019-05-04")
    new = Facts(byline="Émile Zola", published="2024-02-01T08:00:00Z")
    first = publish(app, ann, BOATS, facts=old, url="https://blog.example.com/a")
    second = publish(app, ann, BOATS, facts=new, url="https://www.example.org/b")
    with app.sessions.begin() as session:
        work = catalog.create_library(session, ann, "Work and play")
        catalog.add_media(session, work, first, ann)
    expected = {
        "site:example.com": [first],
        "site:https://blog.example.com/": [first],
        "site:ample.com": [],
        "site:%": [],
        "by:harbour": [first],
        "by:émile": [second],
        'by:"ada harbour"': [first],
        "by:%": [],
        "before:2020": [first],
        "after:2020": [second],
        "after:2024-02-01 before:2024-02-02": [second],
        "in:work": [first],
        'in:"Work and play"': [first],
        "in:nowhere": [],
        "kind:pdf": [],
        "kind:banana": [],
        "site:example.com site:example.org by:ada": [first],
    }
    assert {typed: ids_found(app, ann, f"boats {typed}") for typed in expected} == expected
    assert set(ids_found(app, ann, "boats kind:article kind:pdf")) == {first, second}


def test_what_has_no_date_counts_by_when_it_was_added(app: App, ann: UUID, clock: SetClock) -> None:
    first = publish(app, ann, BOATS)
    day = clock().date() + timedelta(days=10)
    clock.forward(days=20)
    second = publish(app, ann, BOATS)
    assert ids_found(app, ann, f"boats before:{day}") == [first]
    assert ids_found(app, ann, f"boats after:{day}") == [second]


def test_parameters_and_typed_filters_both_count(app: App, ann: UUID) -> None:
    publish(app, ann, BOATS, url="https://example.com/a")
    both = Asked("boats site:example.com", Filters(sites=("example.org",)))
    assert search_items(app.tools, ann, both).items == []


def test_filters_alone_list_the_latest_additions_first(app: App, ann: UUID, clock: SetClock) -> None:
    first = publish(app, ann, BOATS, url="https://example.com/a")
    clock.forward(hours=1)
    second = publish(app, ann, BREAD, url="https://example.com/b")
    assert ids_found(app, ann, "site:example.com") == [second, first]
    assert ids_found(app, ann, "-dough") == [first]
    assert ids_found(app, ann, "   ") == []


@pytest.mark.parametrize(
    "odd",
    [
        '"',
        "''''",
        "a AND OR NOT",
        "(((",
        "NEAR(a b",
        "*",
        "in:",
        "before:never",
        "\0",
        "🚣",
        "a" * 5000,
        "x:y:z",
        "-",
        '-"',
    ],
)
def test_odd_syntax_is_never_an_error(app: App, ann: UUID, odd: str) -> None:
    publish(app, ann, BOATS)
    found_in(app, ann, odd)


# ── Pages ──


def _pages(app: App, viewer: UUID, asked: Asked, most: int) -> list[list[UUID]]:
    pages, cursor = [], None
    while True:
        found = search_items(app.tools, viewer, asked, cursor, most)
        pages.append([one.view.row.id for one in found.items])
        cursor = found.next_cursor
        if cursor is None:
            return pages


def test_pages_together_have_every_item_once_in_the_order_of_the_first_search(app: App, ann: UUID) -> None:
    for number in range(7):
        publish(app, ann, f"{BREAD} " * number + BOATS)
    whole = ids_found(app, ann, "boats")
    pages = _pages(app, ann, Asked("boats"), 3)
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [media_id for page in pages for media_id in page] == whole


def test_later_pages_keep_their_order_and_leave_out_what_has_gone(app: App, ann: UUID) -> None:
    for number in range(5):
        publish(app, ann, f"{BREAD} " * number + BOATS)
    whole = ids_found(app, ann, "boats")
    first = search_items(app.tools, ann, Asked("boats"), None, 2)
    publish(app, ann, BOATS, title="Boats, boats and boats")
    deletions.delete_media_and_files(app.sessions, app.files, ann, whole[3])
    second = search_items(app.tools, ann, Asked("boats"), first.next_cursor, 3)
    assert [one.view.row.id for one in second.items] == [whole[2], whole[4]]
    assert all(one.passages for one in second.items)
    assert (first.total, second.total, second.next_cursor) == (5, 5, None)


def test_a_cursor_of_another_question_or_of_nobody_is_refused(app: App, ann: UUID) -> None:
    for _ in range(2):
        publish(app, ann, BOATS)
    cursor = search_items(app.tools, ann, Asked("boats"), None, 1).next_cursor
    assert cursor is not None
    for wrong in (Asked("harbour"), Asked("boats", wanted=Wanted(is_archived=True))):
        with pytest.raises(InvalidRequest):
            search_items(app.tools, ann, wrong, cursor)
    for bad in ("", "x", "é", cursor[:-3], cursor + "AAAA", "A" * 4000):
        with pytest.raises(InvalidRequest):
            search_items(app.tools, ann, Asked("boats"), bad)


def test_a_cursor_that_names_what_others_hold_shows_nothing_of_it(app: App, ann: UUID, bob: UUID) -> None:
    for _ in range(2):
        publish(app, ann, BOATS)
    cursor = search_items(app.tools, ann, Asked("boats"), None, 1).next_cursor
    assert search_items(app.tools, bob, Asked("boats"), cursor).items == []
    by_filter = Asked("-bread")
    cursor = search_items(app.tools, ann, by_filter, None, 1).next_cursor
    assert search_items(app.tools, bob, by_filter, cursor).items == []


# ── More like this ──


def test_more_like_this_finds_shared_words_and_never_the_item_itself(app: App, ann: UUID, bob: UUID) -> None:
    first = publish(app, ann, BOATS)
    second = publish(app, ann, "At night the lanterns of the boats are lit in every harbour.")
    publish(app, ann, BREAD)
    publish(app, bob, BOATS)
    found = more_like(app.tools, ann, first)
    assert [one.view.row.id for one in found.items] == [second]
    assert not found.by_meaning


def test_more_like_this_is_for_readers_alone(app: App, ann: UUID, bob: UUID) -> None:
    media_id = publish(app, ann, BOATS)
    for viewer, item in ((bob, media_id), (ann, uuid4())):
        with pytest.raises(NotFound):
            more_like(app.tools, viewer, item)


def test_a_long_text_is_found_by_the_words_of_each_of_its_chunks(app: App, ann: UUID) -> None:
    book = publish(app, ann, "\n\n".join(f"chapter{number} {'word ' * 180}." for number in range(600)))
    for number in (0, 63, 255, 256, 257, 511, 512, 599):
        assert ids_found(app, ann, f"chapter{number}") == [book]
        (found,) = found_in(app, ann, f'"chapter{number} word"').items
        assert f"chapter{number} " in found.passages[0].text
