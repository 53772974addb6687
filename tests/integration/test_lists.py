"""The list in every order and through every filter: each item once, where its title, site, date or length puts it."""

from datetime import timedelta
from itertools import product
from random import Random
from uuid import UUID, uuid4

import pytest
from sqlalchemy import insert, update

from nexus.app import App
from nexus.db.session import Statement
from nexus.db.tables import library_media, media_file, revisions
from nexus.errors import InvalidRequest
from nexus.extract import Extraction, Facts
from nexus.libraries import access, catalog
from nexus.media import shelving, versions
from nexus.media.lifecycle import mark_ready_for_reading
from nexus.media.listing import count_items, list_items
from nexus.media.queries import WALKS, View
from nexus.media.shelving import Marks
from nexus.media.texts import Found, title_key
from nexus.media.wanted import Sort, Wanted
from nexus.states.media import Kind, MediaStatus
from nexus.upkeep.promises import PROMISES
from tests.kit.clock import SetClock
from tests.kit.media import new_media, start_extraction, walk_media_to


def publish(
    app: App, media_id: UUID, title: str | None, words: int = 1, published: str | None = None
) -> UUID:
    attempt = start_extraction(app, media_id)
    found = Extraction.plain(title, "word " * words)
    found = Extraction(found.title, found.fragments, Facts(published=published))
    with app.sessions.begin() as session:
        assert mark_ready_for_reading(session, media_id, attempt, Found(found, "tests"))
    return media_id


def views(app: App, user: UUID, wanted: Wanted, most: int = 50) -> list[View]:
    """Every item of a list, page by page."""
    found: list[View] = []
    cursor = None
    while True:
        with app.sessions.read() as session:
            page = list_items(session, user, wanted, cursor, most)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


def ids(app: App, user: UUID, wanted: Wanted, most: int = 50) -> list[UUID]:
    return [view.row.id for view in views(app, user, wanted, most)]


def mark(app: App, user: UUID, media_id: UUID, marks: Marks) -> None:
    with app.sessions.begin() as session:
        shelving.mark_item(session, media_id, user, marks)


def broken_keys(app: App) -> list[UUID]:
    """What the doctor says about the keys."""
    [promise] = [one for one in PROMISES if one.name == "lists.keys"]
    with app.sessions.read() as session:
        return [row.id for row in session.all(promise.offenders, most=10)]


@pytest.mark.parametrize(
    ("title", "key"),
    [
        (None, ""),
        ("“Éclair” of the  DAY", "eclair” of the day"),
        ("ﬁne — Straße", "fine — strasse"),
        ("!!!", "!!!"),
        ("x" * 300, "x" * 80),
    ],
)
def test_titles_are_sorted_without_case_accents_and_quotation_marks(title: str | None, key: str) -> None:
    assert title_key(title) == key


ORDERS = {
    Sort.ADDED: ["delta", "charlie", "bravo", "alpha"],
    Sort.TITLE: ["alpha", "bravo", "charlie", "delta"],
    Sort.SITE: ["bravo", "delta", "alpha", "charlie"],
    Sort.PUBLISHED: ["charlie", "alpha", "delta", "bravo"],
    Sort.TIME: ["delta", "alpha", "charlie", "bravo"],
}


@pytest.mark.parametrize(("sort", "is_reversed"), list(product(Sort, [False, True])))
def test_a_list_has_each_order_and_its_opposite(
    app: App, clock: SetClock, sort: Sort, is_reversed: bool
) -> None:
    user = uuid4()
    for title, site, words, published in (
        ("Alpha", "two.example", 20, "2026-02-01"),
        ("bravo", "one.example", 400, None),
        ("Charlie", "two.example", 30, "2026-03-01"),
        ("“delta”", "www.one.example", 10, "2025-12-31"),
    ):
        publish(app, new_media(app, user, f"https://{site}/{title}"), title, words, published)
        clock.forward(seconds=1)
    expected = ORDERS[sort][:: -1 if is_reversed else 1]
    for most in (1, 2, 3, 50):
        found = views(app, user, Wanted(sort=sort, is_reversed=is_reversed), most)
        assert [title_key(view.row.title).strip("”") for view in found] == expected


@pytest.mark.parametrize("sort", list(Sort))
def test_items_that_are_equal_in_an_order_have_one_place_each(app: App, sort: Sort) -> None:
    user = uuid4()
    made = [publish(app, new_media(app, user), "The same", 3, "2026-01-01") for _ in range(7)]
    for is_reversed in (False, True):
        descends = (sort in {Sort.ADDED, Sort.PUBLISHED}) is not is_reversed
        assert ids(app, user, Wanted(sort=sort, is_reversed=is_reversed), 2) == sorted(made, reverse=descends)


def test_own_titles_stand_where_they_belong(app: App) -> None:
    user = uuid4()
    made = {name: publish(app, new_media(app, user), name) for name in ("Alpha", "Bravo", "Charlie", "Delta")}
    mark(app, user, made["Alpha"], Marks(title="Cherry"))
    mark(app, user, made["Delta"], Marks(title="Apple"))
    for most in (1, 2, 3, 50):
        found = views(app, user, Wanted(sort=Sort.TITLE), most)
        assert [view.row.title for view in found] == ["Apple", "Bravo", "Charlie", "Cherry"]
    mark(app, user, made["Delta"], Marks(title=""))
    assert [view.row.title for view in views(app, user, Wanted(sort=Sort.TITLE), 1)][-1] == "Delta"


@pytest.mark.parametrize("libraries", [2, WALKS + 1])
@pytest.mark.parametrize("sort", list(Sort))
def test_an_item_in_several_libraries_is_listed_once_in_every_order(
    app: App, clock: SetClock, sort: Sort, libraries: int
) -> None:
    """Also if one of them holds another version of its text."""
    user, chance = uuid4(), Random(sort.value)
    made = [
        publish(app, new_media(app, user, f"https://site{n % 3}.example/{n}"), f"Title {n}", n)
        for n in range(8)
    ]
    for _ in range(libraries - 1):
        clock.forward(seconds=1)
        with app.sessions.begin() as session:
            library = catalog.create_library(session, user, "Another")
            for media_id in chance.sample(made, 4):
                catalog.add_media(session, library, media_id, user)
    mark(app, user, made[3], Marks(title="Own"))
    for number in (2, 5):
        versions.enter_own_text(app.sessions, made[number], user, f"Zulu {number}", "a text of my own")
    whole = ids(app, user, Wanted(sort=sort))
    assert sorted(whole) == sorted(made)
    for most in (1, 3):
        assert ids(app, user, Wanted(sort=sort), most) == whole


def test_archived_items_are_left_out_unless_they_are_asked_for(app: App) -> None:
    user = uuid4()
    kept, gone = new_media(app, user), new_media(app, user)
    mark(app, user, gone, Marks(is_archived=True))
    assert ids(app, user, Wanted()) == [kept]
    assert ids(app, user, Wanted(is_archived=True)) == [gone]
    assert set(ids(app, user, Wanted(is_archived=None))) == {kept, gone}
    mark(app, user, gone, Marks(is_archived=False))
    assert set(ids(app, user, Wanted())) == {kept, gone}


def test_a_list_is_narrowed_to_what_was_read_or_is_a_favourite(app: App) -> None:
    user = uuid4()
    read, liked, both, none = (new_media(app, user) for _ in range(4))
    for media_id in (read, both):
        mark(app, user, media_id, Marks(is_read=True))
    for media_id in (liked, both):
        mark(app, user, media_id, Marks(is_favourite=True))
    assert set(ids(app, user, Wanted(is_read=True))) == {read, both}
    assert set(ids(app, user, Wanted(is_read=False))) == {liked, none}
    assert set(ids(app, user, Wanted(is_favourite=True))) == {liked, both}
    assert set(ids(app, user, Wanted(is_favourite=False))) == {read, none}
    assert ids(app, user, Wanted(is_read=True, is_favourite=True)) == [both]
    assert ids(app, user, Wanted(is_read=False, is_favourite=True)) == [liked]


def test_a_list_is_narrowed_to_a_site_and_to_days(app: App, clock: SetClock) -> None:
    user, start = uuid4(), clock.time
    made = []
    for place in range(6):
        made.append(new_media(app, user, f"https://{('www.one.example', 'two.example')[place % 2]}/{place}"))
        clock.forward(days=1)
    assert ids(app, user, Wanted(site="one.example"), 1) == made[4::-2]
    assert ids(app, user, Wanted(site="example"), 1) == []
    days = {"added_from": start + timedelta(days=1), "added_until": start + timedelta(days=4)}
    assert ids(app, user, Wanted(**days), 2) == made[3:0:-1]
    assert ids(app, user, Wanted(site="two.example", **days), 1) == [made[3], made[1]]


def test_a_list_is_narrowed_to_kinds_as_people_call_them(app: App) -> None:
    user = uuid4()
    page = publish(app, new_media(app, user), "A page")
    answered = publish(app, new_media(app, user), "A PDF by its address")
    video = new_media(app, user, "https://www.youtube.com/watch?v=dQw4w9WgXcQ", "video")
    file = {"storage_path": "x", "content_type": "application/pdf", "size_bytes": 1, "filename": "a.pdf"}
    with app.sessions.begin() as session:
        session.run(Statement(insert(media_file).values(media_id=answered, revision=1, **file)))
    assert ids(app, user, Wanted(kind=Kind.WEB_ARTICLE)) == [page]
    assert ids(app, user, Wanted(kind=Kind.PDF)) == [answered]
    assert ids(app, user, Wanted(kind=Kind.VIDEO)) == [video]
    assert ids(app, user, Wanted(kind=Kind.EPUB)) == []


def test_filters_narrow_every_order(app: App) -> None:
    user = uuid4()
    made = [publish(app, new_media(app, user), f"Title {number}") for number in range(4)]
    walk_media_to(app, new_media(app, user), MediaStatus.FAILED)
    mark(app, user, made[1], Marks(is_read=True, title="Own"))
    mark(app, user, made[2], Marks(is_archived=True))
    ready = frozenset({MediaStatus.READY_FOR_READING})
    for sort in Sort:
        assert set(ids(app, user, Wanted(statuses=ready, is_read=False, sort=sort), 1)) == {made[0], made[3]}
        assert ids(app, user, Wanted(is_read=True, sort=sort), 1) == [made[1]]


def test_what_is_counted_is_what_is_listed(app: App) -> None:
    user = uuid4()
    made = [publish(app, new_media(app, user), f"Title {number}") for number in range(4)]
    walk_media_to(app, new_media(app, user), MediaStatus.FAILED)
    with app.sessions.begin() as session:
        library = catalog.create_library(session, user, "Another")
        catalog.add_media(session, library, made[0], user)
    mark(app, user, made[1], Marks(is_archived=True))
    for wanted in (Wanted(), Wanted(is_archived=None), Wanted(is_archived=True), Wanted(library_id=library)):
        with app.sessions.read() as session:
            counts = count_items(session, user, wanted)
        assert sum(counts.values()) == len(ids(app, user, wanted))
    assert counts[MediaStatus.READY_FOR_READING] == 1


def test_a_cursor_belongs_to_its_order(app: App) -> None:
    user = uuid4()
    for number in range(2):
        publish(app, new_media(app, user), f"Title {number}")
    orders = [Wanted(sort=sort, is_reversed=back) for sort, back in product(Sort, [False, True])]
    with app.sessions.read() as session:
        cursors = [list_items(session, user, wanted, most=1).next_cursor for wanted in orders]
        for given, wanted in product(range(len(orders)), range(len(orders))):
            if given != wanted:
                with pytest.raises(InvalidRequest):
                    list_items(session, user, orders[wanted], cursors[given])


def test_the_keys_follow_the_text_that_a_library_holds(app: App) -> None:
    """Whether the library had it before or after it was read, or takes another version."""
    user, later = uuid4(), uuid4()
    media_id = new_media(app, user, "https://example.com/a")
    assert broken_keys(app) == []
    publish(app, media_id, "First", 5)
    new_media(app, later, "https://example.com/a")
    assert broken_keys(app) == []
    versions.enter_own_text(app.sessions, media_id, later, "Second", "one two three")
    assert broken_keys(app) == []
    with app.sessions.begin() as session:
        library = access.default_library(session, user)
        session.run(
            Statement(update(library_media).where(library_media.c.library_id == library).values(words=7))
        )
    assert broken_keys(app) == [media_id]


def test_a_row_shows_what_a_wide_list_needs(app: App) -> None:
    user = uuid4()
    media_id = new_media(app, user, "https://www.example.com/a")
    attempt = start_extraction(app, media_id)
    facts = Facts(byline="Ann Lee", site="The Example", published="2026-01-31")
    text = Extraction("A title", Extraction.plain(None, "A title\n\n" + "word " * 500).fragments, facts)
    with app.sessions.begin() as session:
        mark_ready_for_reading(session, media_id, attempt, Found(text, "tests"))
    [view] = views(app, user, Wanted())
    row = view.row
    assert (row.byline, row.site, row.host, row.published) == (
        "Ann Lee",
        "The Example",
        "example.com",
        "2026-01-31",
    )
    assert (row.words, view.reading_minutes, view.lead, row.progress) == (502, 2, None, 0)
    assert row.excerpt is not None
    assert row.excerpt.startswith("word word")
    assert len(row.excerpt) <= 200


def test_an_item_without_a_text_has_no_length(app: App) -> None:
    user = uuid4()
    new_media(app, user)
    [view] = views(app, user, Wanted())
    assert (view.row.words, view.reading_minutes, view.row.excerpt) == (0, 0, None)


def test_a_book_shows_its_cover(app: App) -> None:
    user = uuid4()
    media_id = publish(app, new_media(app, user), "A book")
    with app.sessions.begin() as session:
        session.run(
            Statement(
                update(revisions).where(revisions.c.media_id == media_id).values(lead_image="asset:cover.png")
            )
        )
    assert views(app, user, Wanted())[0].lead == "cover.png"
