"""Pictures of articles are fetched by Nexus and kept with their text; whatever becomes of them, the text stays."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.db.rows import PictureRow
from nexus.errors import NotFound, StorageFull
from nexus.extract import AVAILABLE_EXTRACTORS
from nexus.libraries import access
from nexus.libraries.catalog import hold_media
from nexus.media import deletions, illustrations, reader, refresh, versions
from nexus.media.lifecycle import EXTRACTION
from nexus.media.pictures import PICTURE, FetchingPictures
from nexus.media.runner import Outcome
from nexus.queue import Work
from nexus.queue.local import LocalQueue
from nexus.settings import Settings
from nexus.states.media import Kind, MediaStatus
from nexus.upkeep.clean import find_leftovers, missing_objects
from nexus.work.handler import Claim, EndedAttempt
from nexus.work.turns import Turns
from tests.kit.clock import SetClock
from tests.kit.http import Caller, data
from tests.kit.media import new_media, row_of, status_of
from tests.kit.pictures import (
    AVIF,
    JPEG,
    SVG,
    WEBP_LOSSY,
    fetch_pictures,
    illustrated,
    pictures_of,
    png,
    png_head,
    text_with,
)
from tests.kit.servers.hostile_site import Hostile, Talk
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.settings import make_settings
from tests.kit.uploads import Uploader, stored_paths, unique_pdf
from tests.kit.work import extract_item, refresh_item

MIB = 1024 * 1024


@pytest.fixture
def settings(
    database_url: str, redis_url: str, tmp_path: Path, pages: Pages, hostile_site: Hostile
) -> Settings:
    return make_settings(
        database_url,
        tmp_path,
        redis_url=redis_url,
        fetch_allow=[pages.place, hostile_site.pair],
        fetch_delay_seconds=0,
        picture_mib=1,
        pictures_mib=2,
        picture_seconds=5,
        backoff_seconds=0,
    )


def served(pages: Pages, path: str, body: bytes, content_type: str = "image/png") -> str:
    pages[path] = Answer(body, content_type)
    return pages.url(path)


def with_limits(app: App, **limits: object) -> App:
    tools = replace(app.tools, pictures=replace(app.tools.pictures, **limits))  # type: ignore[arg-type]
    app.kernel.register(FetchingPictures(tools))
    return app


def only(app: App, media_id: UUID) -> PictureRow:
    (row,) = pictures_of(app, media_id)
    return row


def claimed(app: App, row: PictureRow) -> Claim[PictureRow]:
    with app.sessions.begin() as session:
        claim = handler(app).claim(session, row.id, app.kernel.leases.length)
    assert claim is not None
    return claim


def handler(app: App) -> FetchingPictures:
    found = app.kernel.handlers[PICTURE]
    assert isinstance(found, FetchingPictures)
    return found


def leftovers(app: App) -> list[str]:
    return [each.path for each in find_leftovers(app.sessions, app.files, remove=True)]


def test_pictures_are_fetched_once_their_text_is_readable_and_kept_as_what_they_are(
    app: App, pages: Pages
) -> None:
    bodies = {"png": png(8, 6), "jpeg": JPEG, "webp": WEBP_LOSSY, "avif": AVIF}
    sizes = {"png": (8, 6), "jpeg": (1, 1), "webp": (1, 1), "avif": (2, 2)}
    media_id = illustrated(
        app, *(served(pages, f"/{kind}?x=1&y=2", bodies[kind], "text/plain") for kind in bodies)
    )
    assert status_of(app.sessions, media_id) is MediaStatus.READY_FOR_READING
    assert fetch_pictures(app, media_id) == ["kept"] * 4
    for row, (kind, body) in zip(pictures_of(app, media_id), bodies.items(), strict=True):
        sha256 = hashlib.sha256(body).hexdigest()
        assert (row.content_type, row.size_bytes) == (f"image/{kind}", len(body))
        assert (row.width, row.height) == sizes[kind]
        assert (row.name, row.sha256) == (f"{sha256[:32]}.{kind}", sha256)
        assert row.storage_path == f"{app.files.prefix}media/{media_id}/r1/{row.place}-1.{kind}"
        assert b"".join(app.files.storage.stream(row.storage_path)) == body
    assert fetch_pictures(app, media_id) == [None] * 4, "they are there for good"


def test_a_site_learns_nothing_but_that_nexus_asks(app: App, pages: Pages) -> None:
    fetch_pictures(app, illustrated(app, served(pages, "/1.png", png())))
    ((path, headers),) = pages.asked
    assert path == "/1.png"
    assert not {"referer", "cookie", "authorization"} & headers.keys()
    assert "svg" not in headers["accept"]


def attacks(pages: Pages, site: Hostile) -> dict[str, tuple[str, str]]:
    """The address of each attack, and the code that it ends with."""

    def endless(talk: Talk) -> None:
        talk.say(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n" + png())
        talk.forever(bytes(65536))

    pages["/inside"] = Answer(b"", status=302, headers={"Location": "http://169.254.169.254/latest"})
    return {
        "inside": ("http://127.0.0.1:1/x.png", "E_FETCH_BLOCKED_ADDRESS"),
        "metadata": ("http://169.254.169.254/x.png", "E_FETCH_BLOCKED_ADDRESS"),
        "redirected inside": (pages.url("/inside"), "E_FETCH_BLOCKED_ADDRESS"),
        "endless": (site.on(endless), "E_FETCH_TOO_LARGE"),
        "enormous": (served(pages, "/e", png_head(100_000, 100_000)), "E_PICTURE_TOO_LARGE"),
        "html": (served(pages, "/h", b"<script>parent.ran = 1</script>"), "E_PICTURE_WRONG_TYPE"),
        "svg": (served(pages, "/s", SVG, "image/svg+xml"), "E_PICTURE_WRONG_TYPE"),
        "nothing": (served(pages, "/0", b""), "E_PICTURE_WRONG_TYPE"),
        "gone": (pages.url("/gone"), "E_FETCH_HTTP_4XX"),
    }


def test_a_hostile_picture_costs_itself_alone(app: App, pages: Pages, hostile_site: Hostile) -> None:
    hostile = attacks(pages, hostile_site)
    good = served(pages, "/good.png", png())
    media_id = illustrated(app, *(source for source, _ in hostile.values()), good)
    fetch_pictures(app, media_id)
    found = {row.source: row.error_code for row in pictures_of(app, media_id)}
    assert found == {**dict(hostile.values()), good: None}
    assert len(stored_paths(app)) == 1, "the good one"
    assert status_of(app.sessions, media_id) is MediaStatus.READY_FOR_READING


def test_a_text_with_ten_thousand_pictures_gets_as_many_as_are_allowed(app: App, pages: Pages) -> None:
    with_limits(app, per_text=2)
    sources = [served(pages, f"/{number}.png", png(1 + number % 9)) for number in range(5)]
    media_id = illustrated(app, *sources, *(pages.url(f"/more/{number}") for number in range(10_000)))
    rows = pictures_of(app, media_id)
    assert len(rows) == 200
    too_many = "given up: E_PICTURES_TOO_MANY"
    chosen = [*rows[:4], rows[-1]]
    ended = [app.kernel.run(Work(PICTURE, row.id)) for row in chosen]
    assert ended == ["kept", "kept", too_many, too_many, too_many]
    assert [path for path, _ in pages.asked] == ["/0.png", "/1.png"]


def test_the_pictures_of_a_text_have_a_size_together(app: App, pages: Pages) -> None:
    sizes = {"/a.png": 900, "/b.png": 900, "/c.png": 900, "/d.png": 100}
    sources = [served(pages, path, png(1) + path.encode() + bytes(kib * 1024)) for path, kib in sizes.items()]
    media_id = illustrated(app, *sources)
    assert fetch_pictures(app, media_id) == ["kept", "kept", "given up: E_PICTURES_TOO_MANY", "kept"]


def test_the_same_content_at_two_addresses_is_stored_once(app: App, pages: Pages) -> None:
    media_id = illustrated(app, *(served(pages, path, png()) for path in ("/1.png", "/2.png")))
    assert fetch_pictures(app, media_id) == ["kept", "kept"]
    first, second = pictures_of(app, media_id)
    assert (first.name, first.storage_path) == (second.name, second.storage_path)
    assert len(stored_paths(app)) == 1


def test_a_site_that_is_out_of_order_is_asked_again_and_then_left_alone(
    app: App, pages: Pages, clock: SetClock
) -> None:
    pages["/1.png"] = Answer(b"", status=503)
    media_id = illustrated(app, pages.url("/1.png"))
    assert fetch_pictures(app, media_id) == ["released"]
    clock.forward(minutes=1)
    pages["/1.png"] = Answer(png(), "image/png")
    assert fetch_pictures(app, media_id) == ["kept"]
    pages["/2.png"] = Answer(b"", status=429)
    media_id = illustrated(app, pages.url("/2.png"))
    ended = [fetch_pictures(app, media_id) for _ in range(4) if not clock.forward(minutes=1)]
    assert ended == [["released"], ["released"], ["given up: E_FETCH_RATE_LIMITED"], [None]]
    assert status_of(app.sessions, media_id) is MediaStatus.READY_FOR_READING


def test_waiting_for_a_site_is_not_trying_but_has_an_end(app: App, pages: Pages, clock: SetClock) -> None:
    pages["/1.png"] = Answer(b"", status=429, headers={"Retry-After": "3600"})
    media_id = illustrated(app, pages.url("/1.png"))
    assert fetch_pictures(app, media_id) == ["released"]
    for _ in range(5):
        clock.forward(hours=2)
        assert fetch_pictures(app, media_id) == ["released"]
    assert (only(app, media_id).tries, len(pages.asked)) == (1, 1), "it asked to be left alone"
    clock.forward(hours=24)
    assert fetch_pictures(app, media_id) == ["given up: E_FETCH_BUSY"]


def test_a_late_worker_changes_nothing_and_leaves_nothing_behind(
    app: App, pages: Pages, clock: SetClock
) -> None:
    media_id = illustrated(app, served(pages, "/1.png", png(3)))
    late = claimed(app, only(app, media_id))
    result = handler(app).do(late)
    clock.forward(seconds=app.settings.lease_seconds + 1)
    app.kernel.sweep(LocalQueue())
    clock.forward(minutes=1)
    served(pages, "/1.png", png(4))
    assert fetch_pictures(app, media_id) == ["kept"]
    assert handler(app).settle([EndedAttempt(late, result)]) == ["stale"]
    assert only(app, media_id).width == 4
    assert stored_paths(app) == [only(app, media_id).storage_path]


def test_a_result_that_is_written_twice_stays(app: App, pages: Pages) -> None:
    media_id = illustrated(app, served(pages, "/1.png", png()))
    claim = claimed(app, only(app, media_id))
    ended = EndedAttempt(claim, handler(app).do(claim))
    assert handler(app).settle([ended]) == ["kept"]
    handler(app).settle([ended])
    assert stored_paths(app) == [only(app, media_id).storage_path]


def test_a_text_that_goes_while_its_picture_is_fetched_leaves_nothing_behind(app: App, pages: Pages) -> None:
    user = uuid4()
    media_id = illustrated(app, served(pages, "/1.png", png()), user=user)
    claim = claimed(app, only(app, media_id))
    result = handler(app).do(claim)
    deletions.delete_media_and_files(app.sessions, app.files, user, media_id)
    assert handler(app).settle([EndedAttempt(claim, result)]) == ["stale"]
    assert (pictures_of(app, media_id), stored_paths(app)) == ([], [])


def test_a_deleted_item_takes_its_pictures_with_it(app: App, pages: Pages) -> None:
    user = uuid4()
    media_id = illustrated(app, *(served(pages, f"/{n}.png", png(n)) for n in (1, 2)), user=user)
    fetch_pictures(app, media_id)
    deletions.delete_media_and_files(app.sessions, app.files, user, media_id)
    assert (pictures_of(app, media_id), stored_paths(app)) == ([], [])


def says(*sources: str, words: str) -> None:
    """From now on, every page has this text and these pictures."""
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = lambda _: text_with(*sources, words=words)


def two_revisions(app: App, pages: Pages) -> tuple[UUID, UUID, list[str]]:
    """An item whose picture has changed at the same address since it was saved, and the names of both."""
    user, source = uuid4(), served(pages, "/1.png", png(3))
    says(source, words="One.")
    media_id = new_media(app, user)
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    assert fetch_pictures(app, media_id) == ["kept"]
    served(pages, "/1.png", png(4))
    says(source, words="Two.")
    refresh.request(app.sessions, LocalQueue(), media_id, user, None)
    assert refresh_item(app.tools, media_id) == "revision 2"
    assert fetch_pictures(app, media_id) == [None, "kept"]
    return media_id, user, [row.name or "" for row in pictures_of(app, media_id)]


@pytest.mark.usefixtures("true_time")
def test_a_saved_text_keeps_its_own_pictures_until_nobody_holds_it(
    app: App, pages: Pages, clock: SetClock
) -> None:
    media_id, user, (old, new) = two_revisions(app, pages)
    with app.sessions.read() as session:
        before = versions.view_version(session, media_id, user, 1)
        after = versions.view_version(session, media_id, user, 2)
        assert reader.find_picture(session, before, old).size_bytes == len(png(3))
        assert reader.find_picture(session, after, new).size_bytes == len(png(4))
        for view, name in ((before, new), (after, old)):
            with pytest.raises(NotFound):
                reader.find_picture(session, view, name)
    clock.forward(days=app.settings.revision_days + 2)
    assert leftovers(app) == [f"media/{media_id}/r1"]
    (left,) = pictures_of(app, media_id)
    assert (left.name, stored_paths(app)) == (new, [left.storage_path])


@pytest.mark.usefixtures("true_time")
def test_what_a_crash_left_is_removed_but_nothing_that_is_being_fetched(
    app: App, pages: Pages, clock: SetClock
) -> None:
    media_id = illustrated(app, served(pages, "/1.png", png()))
    claim = claimed(app, only(app, media_id))
    handler(app).do(claim)
    clock.forward(days=2)
    assert leftovers(app) == [], "its worker may still write its row"
    app.kernel.sweep(LocalQueue())
    assert leftovers(app) == [f"{app.files.prefix}media/{media_id}/r1/0-1.png"]
    clock.forward(minutes=1)
    assert fetch_pictures(app, media_id) == ["kept"]
    clock.forward(days=2)
    assert (leftovers(app), missing_objects(app.sessions, app.files)) == ([], [])
    app.files.storage.delete(only(app, media_id).storage_path or "")
    assert missing_objects(app.sessions, app.files) == [media_id]


def test_texts_come_first_and_users_take_turns(app: App) -> None:
    kinds = list(app.kernel.handlers)
    assert kinds.index(EXTRACTION) < kinds.index(PICTURE)
    assert handler(app).share < 1
    one, other = uuid4(), uuid4()
    illustrated(app, *(f"https://example.com/{number}" for number in range(9)), user=one)
    illustrated(app, "https://example.com/x", user=other)
    turns = Turns(app.sessions, app.kernel.leases.length)
    claims = [claim.subject for _ in range(10) for claim in turns.claim(handler(app), 1)]
    assert {row.user_id for row in claims[:2]} == {one, other}
    assert [row.place for row in claims if row.user_id == one] == list(range(9)), "in the order of the text"


def api_html(caller: Caller, media_id: UUID) -> str:
    return str(data(caller.get(f"/media/{media_id}/fragments"))["items"][0]["html"])


def test_clients_get_pictures_from_nexus_alone(app: App, me: Caller, you: Caller, pages: Pages) -> None:
    kept, lead = served(pages, "/1.png", png(8, 6)), served(pages, "/lead.png", png(20, 10))
    media_id = illustrated(app, kept, pages.url("/gone.png"), user=me.user, lead=lead)
    assert api_html(me, media_id).count("src=") == 0, "they are on their way"
    assert data(me.get(f"/media/{media_id}/document"))["lead_image"] is None
    fetch_pictures(app, media_id)
    leading, first, gone = pictures_of(app, media_id)
    html = api_html(me, media_id)
    assert f'<img src="asset:{first.name}" alt="Picture 0"' in html
    assert 'width="8" height="6"' in html
    assert '<img alt="Picture 1"' in html
    assert pages.place not in html
    about = data(me.get(f"/media/{media_id}/document"))
    assert about["lead_image"] == f"asset:{leading.name}"
    assert [(one["source"], one["asset"], one["error_code"]) for one in about["pictures"]] == [
        (lead, leading.name, None),
        (kept, first.name, None),
        (gone.source, None, "E_FETCH_HTTP_4XX"),
    ]
    answer = me.get(f"/media/{media_id}/assets/{first.name}")
    assert (answer.status_code, answer.content) == (200, png(8, 6))
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["x-content-type-options"] == "nosniff"
    policy = answer.headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "sandbox"} <= set(policy)
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert you.get(f"/media/{media_id}/assets/{first.name}").status_code == 404
    assert me.get(f"/media/{illustrated(app, user=me.user)}/assets/{first.name}").status_code == 404


def test_a_picture_of_a_version_that_the_viewer_does_not_hold_is_not_found(
    app: App, pages: Pages, me: Caller
) -> None:
    media_id, _, (old, new) = two_revisions(app, pages)
    assert me.get(f"/media/{media_id}/assets/{new}").status_code == 404
    assert me.add(row_of(app.sessions, media_id).canonical_url) == media_id
    assert me.get(f"/media/{media_id}/assets/{new}").status_code == 200
    assert me.get(f"/media/{media_id}/assets/{old}?revision=1").status_code == 404
    assert me.get(f"/media/{media_id}/assets/{old}").status_code == 404


def test_names_in_html_keep_its_text_and_attributes() -> None:
    known = {"https://a.example/?a=1&b": illustrations.Illustration(0, "", "n.png", None, "", 1, 4, 3)}
    html = '<p>One &lt; two</p><img src="https://a.example/?a=1&amp;b" alt="&quot;A&quot;" width="9">'
    assert illustrations.name_images(html, known) == (
        '<p>One &lt; two</p><img src="asset:n.png" alt="&quot;A&quot;" width="9">'
    )


def with_room(app: App, size: int) -> App:
    """A Nexus in which each user may store so many bytes."""
    files = replace(app.files, shares=replace(app.files.shares, stored_bytes=size))
    app.kernel.register(FetchingPictures(replace(app.tools, files=files)))
    return replace(app, files=files)


def test_pictures_count_in_the_room_of_the_user_who_had_their_text_read(app: App, pages: Pages) -> None:
    """Of several who hold the item, one pays; the same content twice in a text is one object; who lets go of the item
    pays no more."""
    mine, yours, body = uuid4(), uuid4(), png()
    sources = [served(pages, path, body) for path in ("/one.png", "/two.png")]
    media_id = illustrated(app, *sources, user=mine)
    with app.sessions.begin() as session:
        hold_media(session, access.ensure_user(session, yours), media_id)
    fetch_pictures(app, media_id)
    limited = with_room(app, 100 + len(body) - 1)
    with pytest.raises(StorageFull):
        Uploader(limited, mine).begin(unique_pdf(100))
    Uploader(limited, yours).begin(unique_pdf(100))
    deletions.delete_media_and_files(app.sessions, app.files, mine, media_id)
    Uploader(limited, mine).begin(unique_pdf(100))


def test_a_picture_for_which_its_user_has_no_room_is_a_placeholder(app: App, pages: Pages) -> None:
    body = png()
    limited = with_room(app, len(body))
    media_id = illustrated(
        app, served(pages, "/one.png", body), served(pages, "/two.png", png(9, 9)), user=uuid4()
    )
    fetch_pictures(limited, media_id)
    first, second = pictures_of(app, media_id)
    assert (first.error_code, second.name, second.error_code) == (None, None, "E_PICTURE_NO_ROOM")
    assert len(stored_paths(app)) == 1
