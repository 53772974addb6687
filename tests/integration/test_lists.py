"""The list in every order and through every filter: each item once, where its title, site, date or length puts it."""

import re
from datetime import timedelta
from html import unescape
from itertools import product
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import bindparam, insert, update

from bench.places import add_pending
from nexus.app import App
from nexus.db.session import Session, Statement
from nexus.db.shelves import shelf
from nexus.db.tables import library_media, media_file, revisions
from nexus.errors import InvalidRequest
from nexus.extract import Extraction, Facts, Fragment
from nexus.libraries import access, catalog
from nexus.libraries.access import Role
from nexus.media import listing, shelving, versions
from nexus.media.lifecycle import mark_ready_for_reading, reset_failed
from nexus.media.list_filters import Sort, Wanted
from nexus.media.listing import count_items, list_items
from nexus.media.queries import WALKS, View
from nexus.media.shelving import Marks
from nexus.media.texts import Found, title_key
from nexus.states.media import Kind, MediaStatus
from nexus.upkeep.promises import PROMISES
from tests.kit.clock import SetClock
from tests.kit.crowd import Crowd
from tests.kit.http import Caller
from tests.kit.media import new_media, share_media, start_extraction, walk_media_to


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
        with app.sessions.snapshot() as session:
            page = list_items(session, user, wanted, cursor, most)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


@pytest.mark.parametrize("where", ["/media", "/libraries/{}/media"])
def test_an_item_whose_state_changes_while_a_list_is_read_is_not_missed(
    me: Caller, app: App, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list is read in two steps: which states there are, and then what is in each of them."""
    media_id = new_media(app, me.user)
    look = listing._parts

    def then_it_is_extracted(*arguments: Any) -> Any:
        found = look(*arguments)
        publish(app, media_id, "Done meanwhile")
        return found

    monkeypatch.setattr(listing, "_parts", then_it_is_extracted)
    assert str(media_id) in me.get(where.format(me.default_library())).text


def ids(app: App, user: UUID, wanted: Wanted, most: int = 50) -> list[UUID]:
    return [view.row.id for view in views(app, user, wanted, most)]


def mark(app: App, user: UUID, media_id: UUID, marks: Marks) -> None:
    with app.sessions.begin() as session:
        shelving.mark_item(session, media_id, user, marks)


def broken_keys(app: App, of: str = "lists.keys") -> list[UUID]:
    """What the doctor says about the keys, or about the facets."""
    [promise] = [one for one in PROMISES if one.name == of]
    with app.sessions.read() as session:
        return [row.id for row in session.all(promise.offenders, most=10)]


def fill(app: App, user: UUID, many: int, marks: str | None = None) -> None:
    """Put items into a library, newer than everything before, with a mark."""
    made = add_pending(app.sessions, user, many)
    if marks:
        noted = [{"user_id": user, "media_id": media_id, marks: SetClock().time} for media_id in made]
        with app.sessions.begin() as session:
            session.run_many(
                Statement(
                    insert(shelf).values(
                        {shelf.c[name]: bindparam(name) for name in ("user_id", "media_id", marks)}
                        | {"changed_at": SetClock().time}
                    )
                ),
                noted,
            )


def steps(app: App, user: UUID, wanted: Wanted) -> int:
    """In how many thousands of its own steps SQLite finds a page."""
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    lent = app.sessions.pool.lend()
    try:
        lent.driver_connection.set_progress_handler(count, 1000)
        list_items(
            Session(lent.driver_connection, app.sessions.engine.dialect, app.sessions.clock()), user, wanted
        )
    finally:
        lent.driver_connection.set_progress_handler(None, 0)
        app.sessions.pool.take_back(lent, reusable=True)
    return counted


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


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_list_costs_nothing_for_what_it_leaves_out(app: App) -> None:
    """Counted in SQLite's own steps, which do not depend on how busy the machine is."""
    user, failed = uuid4(), frozenset({MediaStatus.FAILED})
    for number in range(3):
        publish(app, new_media(app, user), f"Title {number}")
    lists = [
        wanted
        for sort in Sort
        for wanted in (
            Wanted(sort=sort),
            Wanted(sort=sort, is_reversed=True),
            Wanted(sort=sort, is_favourite=True),
            Wanted(sort=sort, is_read=True),
            Wanted(sort=sort, statuses=failed, is_archived=None),
            Wanted(sort=sort, kind=Kind.EPUB, is_archived=None),
        )
    ]
    before = [steps(app, user, wanted) for wanted in lists]
    fill(app, user, 2000, "archived_at")
    assert [len(ids(app, user, wanted)) for wanted in lists] == [3, 3, 0, 0, 0, 0] * len(Sort)
    for wanted, least in zip(lists, before, strict=True):
        assert steps(app, user, wanted) <= least + 3, wanted


def test_a_list_follows_everything_that_it_is_narrowed_by(app: App) -> None:
    """In every library that holds an item, also in those that get it later."""
    user, other = uuid4(), uuid4()
    url = "https://example.com/a"
    media_id = new_media(app, user, url)
    new_media(app, other, url)

    def shown(viewer: UUID, status: MediaStatus, kind: Kind = Kind.WEB_ARTICLE) -> bool:
        assert broken_keys(app, "lists.facets") == []
        wanted = Wanted(statuses=frozenset({status}), kind=kind)
        return ids(app, viewer, wanted) == [media_id]

    for status in MediaStatus:
        assert shown(user, status) is shown(other, status) is (status is MediaStatus.PENDING)
    walk_media_to(app, media_id, MediaStatus.FAILED)
    assert shown(other, MediaStatus.FAILED)
    with app.sessions.begin() as session:
        assert reset_failed(session, media_id, user, None)
    assert shown(other, MediaStatus.PENDING)
    publish(app, media_id, "A page")
    assert shown(user, MediaStatus.READY_FOR_READING)
    mark(app, user, media_id, Marks(is_read=True, is_archived=True))
    assert not shown(user, MediaStatus.READY_FOR_READING)
    assert shown(other, MediaStatus.READY_FOR_READING)
    with app.sessions.begin() as session:
        library = catalog.create_library(session, user, "Another")
        catalog.add_media(session, library, media_id, user)
    assert ids(app, user, Wanted(library_id=library)) == []
    assert ids(app, user, Wanted(library_id=library, is_archived=True, is_read=True)) == [media_id]
    mark(app, user, media_id, Marks(is_archived=False))
    assert ids(app, user, Wanted(library_id=library)) == [media_id]
    versions.enter_own_text(app.sessions, media_id, user, "Mine", "a text of my own")
    assert shown(user, MediaStatus.READY_FOR_READING)


def test_members_narrow_a_shared_library_by_their_own_marks(app: App) -> None:
    owner, member = uuid4(), uuid4()
    made = [publish(app, new_media(app, owner), f"Title {number}") for number in range(3)]
    library = share_media(app, owner, made[0], (member, Role.MEMBER))
    with app.sessions.begin() as session:
        for media_id in made[1:]:
            catalog.add_media(session, library, media_id, owner)
    mark(app, owner, made[0], Marks(is_archived=True, is_favourite=True))
    mark(app, member, made[1], Marks(is_archived=True, is_read=True))
    for sort in Sort:
        assert set(ids(app, member, Wanted(library, sort=sort), 1)) == {made[0], made[2]}
        assert set(ids(app, owner, Wanted(library, sort=sort), 1)) == {made[1], made[2]}
        assert ids(app, member, Wanted(library, is_archived=True, sort=sort)) == [made[1]]
        assert ids(app, member, Wanted(is_favourite=True, sort=sort)) == []
        assert ids(app, owner, Wanted(is_favourite=True, is_archived=None, sort=sort)) == [made[0]]


def test_an_item_is_listed_for_the_library_that_passes_the_filters(app: App, clock: SetClock) -> None:
    """Also on a later page, if another library that holds it does not pass them."""
    user, made = uuid4(), []
    with app.sessions.begin() as session:
        library = catalog.create_library(session, user, "Another")
    for number in range(3):
        made.append(new_media(app, user, f"https://example.com/{number}"))
        clock.forward(seconds=1)
    until = clock.time
    with app.sessions.begin() as session:
        for media_id in made:
            catalog.add_media(session, library, media_id, user)
    assert ids(app, user, Wanted(added_until=until), 1) == made[::-1]


def test_a_mark_races_with_another_library_of_its_author_and_none_misses_the_other(app: App) -> None:
    crowd, member, owner = Crowd(3), uuid4(), uuid4()
    try:
        for number in range(15):
            url = f"https://example.com/{number}"
            media_id = new_media(app, owner, url)
            share_media(app, owner, media_id, (member, Role.MEMBER))

            def act(who: int, url: str = url, media_id: UUID = media_id) -> None:
                if who == 0:
                    new_media(app, member, url)
                elif who == 1:
                    mark(app, member, media_id, Marks(is_favourite=True))
                else:
                    start_extraction(app, media_id)

            crowd.rush(act)
            assert broken_keys(app, "lists.facets") == []
            assert ids(app, member, Wanted(is_favourite=True)).count(media_id) == 1
    finally:
        crowd.close()


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
    with app.sessions.snapshot() as session:
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


@pytest.mark.parametrize(
    ("html", "excerpt"),
    [
        (
            "<h1>A title</h1>\n\n<figure><img><figcaption>Boats.</figcaption></figure>\n\n<p><b>1</b> &lt; 2.</p>",
            "1 < 2.",
        ),
        ("<h1>A title</h1>\n\n<pre><code>x = 1</code></pre>\n\n<p>Words.</p>", "Words."),
        ("<figure><figcaption>Only a caption.</figcaption></figure>", "Only a caption."),
        ("<h1>A title</h1>", "A title"),
    ],
)
def test_an_excerpt_is_of_the_sentences_of_a_text(app: App, html: str, excerpt: str) -> None:
    user = uuid4()
    media_id = new_media(app, user)
    attempt = start_extraction(app, media_id)
    found = Extraction("A title", (Fragment(unescape(re.sub("<[^<>]*>", "", html)), html),))
    with app.sessions.begin() as session:
        mark_ready_for_reading(session, media_id, attempt, Found(found, "tests"))
    assert views(app, user, Wanted())[0].row.excerpt == excerpt


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
