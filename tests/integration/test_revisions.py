"""Revisions: nobody's saved copy changes unless they ask, and nobody reads what another has entered."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import bindparam, select

from nexus.app import App, build
from nexus.db.session import Statement
from nexus.db.tables import library_media, revisions
from nexus.editorial import requests
from nexus.editorial.requests import NewJob
from nexus.errors import Forbidden, InvalidRequest, NotFound
from nexus.extract import AVAILABLE_EXTRACTORS, Asset, Extraction, Facts, Fragment, Source
from nexus.libraries import access, catalog, members
from nexus.libraries.access import Role
from nexus.media import add, deletions, queries, reader, refresh, versions
from nexus.media.fragments import read_text_page
from nexus.media.listing import list_items
from nexus.media.runner import Outcome
from nexus.queue.local import LocalQueue
from nexus.states.media import Kind, MediaStatus, Origin
from nexus.upkeep import clean
from tests.kit.clock import SetClock
from tests.kit.crowd import Crowd
from tests.kit.http import Caller, data
from tests.kit.media import new_media, row_of, share_media, walk_media_to
from tests.kit.settings import make_settings
from tests.kit.uploads import stored_paths
from tests.kit.work import extract_item, refresh_item

URL = "https://example.com/an-article"
BODY = " ".join(["The harbour was quiet in the morning, and the boats lay still."] * 5)
SECRET = "What only a subscriber may read, and this reader pasted."
_NUMBERS = Statement(
    select(revisions.c.number)
    .where(revisions.c.media_id == bindparam("media_id"))
    .order_by(revisions.c.number)
)
_HELD = Statement(select(library_media).where(library_media.c.media_id == bindparam("media_id")))


def says(text: str, title: str = "A title", picture: bytes = b"\x89PNG one") -> None:
    """From now on, every page has this text and this picture."""
    asset = Asset("p.png", "image/png", picture)

    def extract(source: Source) -> Extraction:
        html = f'<p>{text}</p><img src="asset:p.png">'
        return Extraction(title, (Fragment(text, html),), Facts(byline=title), assets=(asset,))

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract


def holder(app: App, url: str = URL) -> UUID:
    """Somebody who adds the address."""
    user = uuid4()
    with app.sessions.begin() as session:
        add.add_url(session, user, "web_article", url, {})
    return user


def readable(app: App, text: str = "the first text") -> tuple[UUID, UUID]:
    """An item that can be read, and its first holder."""
    says(text)
    user = uuid4()
    media_id = new_media(app, user, URL)
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    return media_id, user


def refreshed(app: App, media_id: UUID, user: UUID, text: str, **given: Any) -> str | None:
    says(text, **given)
    refresh.request(app.sessions, LocalQueue(), media_id, user, None)
    return refresh_item(app.tools, media_id)


def seen(app: App, media_id: UUID, user: UUID) -> dict[str, Any]:
    """Whatever a user sees of an item."""
    with app.sessions.read() as session:
        view = queries.get_media(session, media_id, user)
        text = read_text_page(session, view).items
        document = reader.document(session, view, user)
        return {
            "row": view.row._replace(newest_revision=0),
            "text": [(one.id, one.text, one.html) for one in text],
            "document": document.row,
            "picture": reader.find_picture(session, view, "p.png"),
            "listed": [one.row.title for one in list_items(session, user).items],
        }


def text_of(app: App, media_id: UUID, user: UUID) -> str:
    with app.sessions.read() as session:
        return read_text_page(session, queries.get_media(session, media_id, user)).items[0].text


def numbers(app: App, media_id: UUID) -> list[int]:
    with app.sessions.read() as session:
        return [row.number for row in session.all(_NUMBERS, media_id=media_id)]


def numbers_known(app: App, media_id: UUID, user: UUID) -> list[int]:
    with app.sessions.read() as session:
        return [
            one.number
            for one in versions.list_versions(session, queries.get_media(session, media_id, user), user)
        ]


def test_another_users_refresh_leaves_a_saved_copy_byte_for_byte(app: App, clock: SetClock) -> None:
    media_id, ann = readable(app)
    bob = holder(app)
    before = seen(app, media_id, ann)
    clock.forward(hours=1)
    assert refreshed(app, media_id, bob, "rewritten", title="Another", picture=b"\x89PNG two") == "revision 2"
    assert seen(app, media_id, ann) == before
    after = seen(app, media_id, bob)
    assert (after["row"].title, after["text"][0][1]) == ("Another", "rewritten")
    assert after["picture"].data == b"\x89PNG two"


def test_a_newer_version_is_offered_and_taken_only_on_request(app: App) -> None:
    media_id, ann = readable(app)
    bob = holder(app)
    refreshed(app, media_id, bob, "the second text")
    with app.sessions.read() as session:
        assert queries.get_media(session, media_id, ann).newer_revision == 2
        assert queries.get_media(session, media_id, bob).newer_revision is None
    assert numbers_known(app, media_id, ann) == [2, 1]
    assert versions.use_version(app.sessions, media_id, ann, 2) == 1
    assert text_of(app, media_id, ann) == "the second text"
    assert versions.use_version(app.sessions, media_id, ann, 1) == 1, "and back again"
    assert text_of(app, media_id, ann) == "the first text"
    assert text_of(app, media_id, bob) == "the second text"


def test_somebody_who_adds_the_address_later_gets_the_newest_text(app: App) -> None:
    media_id, ann = readable(app)
    refreshed(app, media_id, ann, "the second text")
    late = holder(app)
    assert text_of(app, media_id, late) == "the second text"
    assert numbers_known(app, media_id, late) == [2], "what others held before is not theirs to see"
    with pytest.raises(NotFound):
        versions.use_version(app.sessions, media_id, late, 1)


def test_the_first_extraction_and_a_retry_serve_everyone(app: App) -> None:
    ann, bob = holder(app), holder(app)
    with app.sessions.read() as session:
        media_id = list_items(session, ann).items[0].row.id
    walk_media_to(app, media_id, MediaStatus.FAILED)
    with app.sessions.begin() as session:
        add.add_url(session, bob, "web_article", URL, {})
    says("the first text")
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    assert text_of(app, media_id, ann) == text_of(app, media_id, bob) == "the first text"


def test_a_refresh_that_finds_an_earlier_text_goes_back_to_it(app: App) -> None:
    media_id, ann = readable(app)
    assert refreshed(app, media_id, ann, "the second text") == "revision 2"
    assert refreshed(app, media_id, ann, "the first text") == "revision 1"
    assert refreshed(app, media_id, ann, "the first text") == "unchanged"
    assert numbers(app, media_id) == [1, 2]


def test_a_plain_member_cannot_change_what_an_admin_holds(app: App) -> None:
    media_id, ann = readable(app)
    member = uuid4()
    share_media(app, ann, media_id, (member, Role.MEMBER))
    with pytest.raises(Forbidden):
        refresh.request(app.sessions, LocalQueue(), media_id, member, None)
    with pytest.raises(Forbidden):
        versions.use_version(app.sessions, media_id, member, 1)


def test_a_shared_librarys_refresh_leaves_its_members_own_copy(app: App) -> None:
    media_id, ann = readable(app)
    bob = holder(app)
    library = share_media(app, ann, media_id, (bob, Role.MEMBER))
    assert refreshed(app, media_id, ann, "the second text") == "revision 2"
    assert text_of(app, media_id, bob) == "the first text", "bob administers a copy of their own"
    guest = uuid4()
    with app.sessions.begin() as session:
        access.ensure_user(session, guest)
        members.join(session, library, guest, Role.MEMBER)
    assert text_of(app, media_id, guest) == "the second text", "the guest has only the shared one"


def test_an_item_put_into_another_library_keeps_the_text_that_is_seen(app: App) -> None:
    media_id, ann = readable(app)
    bob = holder(app)
    refreshed(app, media_id, bob, "the second text")
    with app.sessions.begin() as session:
        library = catalog.create_library(session, ann, "Research")
        catalog.add_media(session, library, media_id, ann)
    assert text_of(app, media_id, ann) == "the first text"


def entered(app: App) -> tuple[UUID, UUID, UUID]:
    """An item with ann's own text, and bob, who shares a library with her."""
    media_id, ann = readable(app)
    bob = holder(app)
    share_media(app, ann, media_id, (bob, Role.ADMIN))
    assert versions.enter_own_text(app.sessions, media_id, ann, "Mine", SECRET) == 2
    return media_id, ann, bob


def test_an_entered_text_is_its_users_alone(app: App) -> None:
    media_id, ann, bob = entered(app)
    assert text_of(app, media_id, ann) == SECRET
    assert text_of(app, media_id, bob) == "the first text"
    assert numbers_known(app, media_id, ann) == [2, 1]
    assert numbers_known(app, media_id, bob) == [1]
    with app.sessions.read() as session:
        assert queries.get_media(session, media_id, bob).newer_revision is None
        assert versions.find_version(session, media_id, ann, 2).origin is Origin.ENTERED
    versions.use_version(app.sessions, media_id, ann, 1)
    versions.use_version(app.sessions, media_id, ann, 2)
    assert text_of(app, media_id, bob) == "the first text", "it goes only into her default library"


@pytest.mark.parametrize("number", [2, 99])
def test_no_door_opens_an_entered_text_for_another(app: App, site: Any, number: int) -> None:
    """A revision of somebody else is as good as none at all."""
    media_id, _, bob = entered(app)
    other = site.caller(bob)
    paths = [
        f"/media/{media_id}/revisions/{number}",
        f"/media/{media_id}/revisions/{number}/diff?with=1",
        f"/media/{media_id}/revisions/1/diff?with={number}",
        f"/media/{media_id}/fragments?revision={number}",
        f"/media/{media_id}/document?revision={number}",
        f"/media/{media_id}/assets/p.png?revision={number}",
        f"/media/{media_id}/file?revision={number}",
    ]
    for path in paths:
        answer = other.get(path)
        assert (answer.status_code, SECRET in answer.text) == (404, False), path
    assert other.post(f"/media/{media_id}/revisions/{number}/use").status_code == 404
    for path in (
        f"/media/{media_id}",
        f"/media/{media_id}/fragments",
        "/media",
        f"/media/{media_id}/revisions",
    ):
        assert SECRET not in other.get(path).text


def test_a_job_takes_the_revision_that_its_editor_holds(app: App) -> None:
    says(BODY)
    ann = uuid4()
    media_id = new_media(app, ann, URL)
    extract_item(app.tools, media_id)
    bob = holder(app)
    secret = f"{SECRET} {BODY}"
    versions.enter_own_text(app.sessions, media_id, ann, "Mine", secret)
    jobs = [requests.create_job(app.tools, user, NewJob(media_id=media_id)) for user in (ann, bob)]
    assert [job.extracted_text for job in jobs] == [secret, BODY]
    assert [job.media_revision for job in jobs] == [2, 1]


def test_another_admin_of_a_shared_library_cannot_change_what_its_admins_read(app: App) -> None:
    media_id, ann, bob = entered(app)
    refreshed(app, media_id, bob, "the third text")
    assert (text_of(app, media_id, ann), text_of(app, media_id, bob)) == (SECRET, "the third text")
    assert numbers(app, media_id) == [1, 2, 3]
    assert numbers_known(app, media_id, bob) == [3, 1]


def test_a_text_can_be_entered_for_an_item_that_failed(app: App) -> None:
    ann = holder(app)
    with app.sessions.read() as session:
        media_id = list_items(session, ann).items[0].row.id
    walk_media_to(app, media_id, MediaStatus.FAILED)
    bob = holder(app, "https://example.com/other")
    with app.sessions.begin() as session:
        add.hold_article(session, bob, URL)
    versions.enter_own_text(app.sessions, media_id, ann, "", SECRET)
    with app.sessions.read() as session:
        assert queries.get_media(session, media_id, ann).capabilities.can_quote
        assert not queries.get_media(session, media_id, bob).capabilities.can_read
    with app.sessions.begin() as session:
        add.add_url(session, bob, "web_article", URL, {})
    assert text_of(app, media_id, ann) == SECRET, "a retry by another leaves it alone"


@pytest.mark.parametrize("text", ["", " \n ", "\x00", "x" * (versions.TEXT_LENGTH + 1)])
def test_an_empty_or_endless_text_cannot_be_entered(app: App, text: str) -> None:
    media_id, ann = readable(app)
    with pytest.raises(InvalidRequest):
        versions.enter_own_text(app.sessions, media_id, ann, "Mine", text)
    assert numbers(app, media_id) == [1]


def test_a_stranger_cannot_enter_a_text(app: App) -> None:
    media_id, _ = readable(app)
    with pytest.raises(NotFound):
        versions.enter_own_text(app.sessions, media_id, uuid4(), "Mine", SECRET)
    assert numbers(app, media_id) == [1]


def cleaned(app: App) -> list[str]:
    return [each.kind for each in clean.find_leftovers(app.sessions, app.files, remove=True)]


def test_versions_that_nobody_holds_go_after_a_while(app: App, clock: SetClock) -> None:
    media_id, ann = readable(app)
    for number in (2, 3, 4):
        assert refreshed(app, media_id, ann, f"text {number}") == f"revision {number}"
    clock.forward(days=29)
    assert cleaned(app) == []
    clock.forward(days=2)
    assert cleaned(app) == ["revisions"] * 3
    assert (numbers(app, media_id), numbers_known(app, media_id, ann)) == ([4], [4])
    row = row_of(app.sessions, media_id)
    assert (row.revision, row.newest_revision, row.last_revision) == (4, 4, 4)
    assert text_of(app, media_id, ann) == text_of(app, media_id, holder(app)) == "text 4"
    assert refreshed(app, media_id, ann, "text 5") == "revision 5"


def test_a_held_version_stays_however_old_it_is(app: App, clock: SetClock) -> None:
    media_id, ann = readable(app)
    bob = holder(app)
    refreshed(app, media_id, bob, "the second text")
    versions.use_version(app.sessions, media_id, bob, 1)
    clock.forward(days=400)
    assert cleaned(app) == []
    assert text_of(app, media_id, ann) == text_of(app, media_id, bob) == "the first text"


def test_a_version_let_go_lately_stays_though_it_is_old(app: App, clock: SetClock) -> None:
    media_id, ann = readable(app)
    clock.forward(days=400)
    refreshed(app, media_id, ann, "the second text")
    assert cleaned(app) == []
    versions.use_version(app.sessions, media_id, ann, 1)
    assert text_of(app, media_id, ann) == "the first text"


def test_deleting_an_item_removes_every_version_of_it(app: App) -> None:
    media_id, ann = readable(app)
    refreshed(app, media_id, ann, "the second text")
    versions.enter_own_text(app.sessions, media_id, ann, "Mine", SECRET)
    deletions.delete_media_and_files(app.sessions, app.files, ann, media_id)
    assert (numbers(app, media_id), stored_paths(app)) == ([], [])


def test_the_api_lists_reads_compares_and_uses_versions(app: App, me: Caller) -> None:
    says("the quiet harbour")
    media_id = new_media(app, me.user, URL)
    extract_item(app.tools, media_id)
    refreshed(app, media_id, me.user, "the busy harbour")
    listed = data(me.get(f"/media/{media_id}/revisions"))
    assert (listed["revision"], [one["number"] for one in listed["items"]]) == (2, [2, 1])
    old = data(me.get(f"/media/{media_id}/revisions/1"))
    assert (old["number"], [one["text"] for one in old["items"]]) == (1, ["the quiet harbour"])
    found = data(me.get(f"/media/{media_id}/revisions/2/diff", params={"with": 1}))
    assert (found["words_added"], found["words_removed"]) == (1, 1)
    (row,) = found["rows"]
    assert [span["text"] for span in row["before"] if span["is_marked"]] == ["quiet "]
    assert [span["text"] for span in row["after"] if span["is_marked"]] == ["busy "]
    used = data(me.post(f"/media/{media_id}/revisions/1/use"))
    assert used == {"media_id": str(media_id), "revision": 1, "moved": 1}
    assert data(me.get(f"/media/{media_id}"))["revision"] == 1
    assert data(me.get(f"/media/{media_id}"))["newer_revision"] == 2
    for wrong in ("0", "-1", "x", "99999999999"):
        assert me.get(f"/media/{media_id}/revisions/{wrong}").status_code in {400, 404}


@pytest.fixture
def crowded(clean_postgres: str, tmp_path: Path) -> Any:
    app = build(make_settings(clean_postgres, tmp_path, database_pool=20))
    yield app
    app.close()


ROUNDS = 25


def all_at_once(*acts: Callable[[], Any]) -> list[Any]:
    """What each of them returned or raised."""

    def act(place: int) -> Any:
        try:
            return acts[place]()
        except Exception as error:
            return error

    crowd = Crowd(len(acts))
    try:
        return crowd.rush(act)
    finally:
        crowd.close()


def held(app: App, media_id: UUID) -> list[int | None]:
    with app.sessions.read() as session:
        return [row.revision for row in session.all(_HELD, media_id=media_id)]


def test_refreshes_of_two_users_at_once_give_each_their_text(crowded: App) -> None:
    app = crowded
    media_id, ann = readable(app)
    bob = holder(app)
    for number in range(ROUNDS):
        says(f"round {number}")
        for user in (ann, bob):
            refresh.request(app.sessions, LocalQueue(), media_id, user, None)
        ends = all_at_once(*[lambda: refresh_item(app.tools, media_id)] * 2)
        assert not any(isinstance(end, BaseException) for end in ends), ends
        refresh_item(app.tools, media_id)
        assert text_of(app, media_id, ann) == text_of(app, media_id, bob) == f"round {number}"
    assert numbers(app, media_id) == list(range(1, ROUNDS + 2)), "each text was written once"


def test_whoever_adds_an_address_during_a_refresh_sees_a_whole_text(crowded: App) -> None:
    app = crowded
    media_id, ann = readable(app)
    for number in range(ROUNDS):
        says(f"round {number}")
        refresh.request(app.sessions, LocalQueue(), media_id, ann, None)
        late, _ = all_at_once(lambda: holder(app), lambda: refresh_item(app.tools, media_id))
        assert isinstance(late, UUID), late
        assert text_of(app, media_id, late).startswith(("round", "the first text"))


def test_whoever_adds_an_address_during_its_first_extraction_can_read_it(crowded: App) -> None:
    app = crowded
    for number in range(ROUNDS):
        url = f"{URL}/{number}"
        says(f"round {number}")
        media_id = new_media(app, uuid4(), url)
        late, end = all_at_once(partial(holder, app, url), partial(extract_item, app.tools, media_id))
        assert (isinstance(late, UUID), end) == (True, Outcome.READABLE)
        assert text_of(app, media_id, late) == f"round {number}"


def test_using_and_deleting_at_once_leave_nothing_half_done(crowded: App) -> None:
    app = crowded
    for number in range(ROUNDS):
        url = f"{URL}/{number}"
        says("the first text")
        ann = uuid4()
        media_id = new_media(app, ann, url)
        extract_item(app.tools, media_id)
        refreshed(app, media_id, ann, "the second text")
        used, _ = all_at_once(
            partial(versions.use_version, app.sessions, media_id, ann, 1),
            partial(deletions.delete_media_and_files, app.sessions, app.files, ann, media_id),
        )
        assert used == 1 or isinstance(used, NotFound), used
        assert (numbers(app, media_id), held(app, media_id)) == ([], [])


def test_no_version_is_removed_while_somebody_takes_it_up(crowded: App) -> None:
    app = crowded
    media_id, ann = readable(app)
    refreshed(app, media_id, ann, "the second text")
    refreshed(app, media_id, ann, "the third text")
    later = build(
        app.settings.model_copy(update={"revision_days": 1e-9}), lambda: app.sessions.clock() + timedelta(1)
    )
    for number in range(ROUNDS):
        used, _ = all_at_once(
            lambda: versions.use_version(app.sessions, media_id, ann, 2),
            lambda: list(clean.find_leftovers(later.sessions, later.files, remove=True)),
        )
        assert isinstance(used, int | NotFound), used
        assert text_of(app, media_id, ann) in {"the second text", "the third text", f"text {number - 1}"}
        refreshed(app, media_id, ann, f"text {number}")
    later.close()
