"""Media over HTTP: take in, read, retry, delete."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from nexus.app import App, build
from nexus.errors import TranscriptUnavailable
from nexus.extract import AVAILABLE_EXTRACTORS
from nexus.libraries.access import Role
from nexus.states.media import Kind, MediaStatus, Stage
from nexus.web.http.routing import MOST_BODY
from tests.kit.clock import SetClock
from tests.kit.http import Caller, Site, data, problem, serve
from tests.kit.media import (
    TEXTS,
    fail_media,
    good_extractor,
    history_of,
    row_of,
    share_media,
    start_extraction,
    status_of,
    walk_media_to,
)
from tests.kit.settings import make_settings

ARTICLE = {"kind": "web_article", "url": "https://example.com/an-article"}
VIDEO = "https://www.youtube.com/watch?v=dQw4w9WgXcQ"
CAPABILITIES = {"can_read", "can_highlight", "can_quote", "can_search", "can_play", "can_download_file"}


@pytest.fixture(params=["/media", "/media/url"])
def submit_path(request: pytest.FixtureRequest) -> str:
    """The two endpoints that take an address do the same."""
    return str(request.param)


def test_submitting_an_address_twice_creates_one_media(me: Caller, submit_path: str) -> None:
    first = data(me.post(submit_path, json=ARTICLE))
    second = data(me.post(submit_path, json=ARTICLE))
    assert first == {"media_id": first["media_id"], "created": True, "enqueued": False}
    assert second == {"media_id": first["media_id"], "created": False, "enqueued": False}


@pytest.mark.parametrize(
    ("kind", "canonical", "spellings"),
    [
        (
            "web_article",
            "https://example.com/a?b=1&a=2",
            [
                "https://example.com/a?b=1&a=2#part",
                "HTTPS://EXAMPLE.com:443/a?b=1&a=2",
                "https://example.com/a?utm_source=x&b=1&utm_medium=y&a=2",
                "https://example.com/a?b=1&a=2&fbclid=1&gclid=2",
                "  https://example.com/./x/../a?b=1&a=2\n",
            ],
        ),
        (
            "video",
            VIDEO,
            [
                "https://youtu.be/dQw4w9WgXcQ?t=10",
                "http://m.youtube.com/watch?feature=x&v=dQw4w9WgXcQ&list=y",
                "https://www.youtube.com/embed/dQw4w9WgXcQ",
                "https://youtube.com/shorts/dQw4w9WgXcQ",
                "https://www.youtube.com/live/dQw4w9WgXcQ",
                "https://www.youtube-nocookie.com/v/dQw4w9WgXcQ",
                "https://music.youtube.com/watch?v=dQw4w9WgXcQ",
            ],
        ),
    ],
    ids=["article", "video"],
)
def test_spellings_of_one_address_are_one_media(
    me: Caller, kind: str, canonical: str, spellings: list[str]
) -> None:
    answers = [
        data(me.post("/media/url", json={"kind": kind, "url": url})) for url in [*spellings, canonical]
    ]
    assert len({answer["media_id"] for answer in answers}) == 1
    assert [answer["created"] for answer in answers] == [True] + [False] * len(spellings)
    assert data(me.get(f"/media/{answers[0]['media_id']}"))["canonical_url"] == canonical


def test_different_addresses_stay_different_media(me: Caller) -> None:
    urls = [
        "https://example.com/a",
        "https://example.com/A",
        "https://example.com/a/",
        "http://example.com/a",
    ]
    urls += ["https://example.com/a?b=1", "https://example.com:8443/a", "https://www.example.com/a"]
    assert len({me.add(url) for url in urls} | {me.add(urls[0], "video")}) == len(urls) + 1


KINDS = ("pdf", "epub", "podcast_episode", "text", "WEB_ARTICLE", "", " video", "nonsense")


def test_kinds_that_are_not_made_from_a_url_are_refused(me: Caller, submit_path: str) -> None:
    for kind in KINDS:
        assert problem(me.post(submit_path, json={**ARTICLE, "kind": kind})) == (400, "E_INVALID_KIND"), kind


NO_ADDRESSES = (
    "",
    "rubbish",
    "/relative",
    "//example.com/",
    "https://",
    "ftp://example.com/",
    "javascript:alert(1)",
    "file:///etc/passwd",
    "data:text/html,x",
    "https://user:password@example.com/",
    "https://user@example.com/",
    "https://exa mple.com/",
    "https://[::1/",
    "https://example.com:99999/",
    "https://example.com/" + "x" * 2048,
    "https://example.com/" + "é" * 1000,
)


def test_invalid_addresses_are_refused(me: Caller, submit_path: str) -> None:
    for url in NO_ADDRESSES:
        assert problem(me.post(submit_path, json={**ARTICLE, "url": url})) == (400, "E_INVALID_URL"), url
    assert data(me.get("/media"))["items"] == []


def test_youtube_addresses_without_a_video_are_refused(me: Caller) -> None:
    for path in ("/watch", "/watch?v=short", "/playlist?list=x", "/embed/videoseries", "/"):
        given = {"kind": "video", "url": f"https://www.youtube.com{path}"}
        assert problem(me.post("/media/url", json=given)) == (400, "E_INVALID_URL"), path


BODIES = (
    b"rubbish",
    b"",
    b"[]",
    b"null",
    b'"text"',
    b"{}",
    b'{"kind": "web_article"}',
    b'{"url": "https://example.com/"}',
    b'{"kind": 1, "url": "https://example.com/"}',
    b'{"kind": null, "url": "https://example.com/"}',
    b'{"kind": "web_article", "url": ["https://example.com/"]}',
    b'{"kind": "web_article", "url": "https://example.com/", "library": "x"}',
)


def test_malformed_requests_are_refused(me: Caller, submit_path: str) -> None:
    for body in BODIES:
        answer = me.post(submit_path, content=body, headers={"Content-Type": "application/json"})
        assert problem(answer) == (400, "E_INVALID_REQUEST"), body


def test_a_body_that_is_too_large_is_refused(me: Caller, submit_path: str) -> None:
    large = json.dumps({**ARTICLE, "url": "https://example.com/" + "x" * MOST_BODY})
    answer = me.post(submit_path, content=large, headers={"Content-Type": "application/json"})
    assert problem(answer) == (413, "E_INVALID_REQUEST")
    assert "too large" in answer.json()["error"]["message"]


def test_a_body_that_is_too_large_without_a_stated_length_is_refused(me: Caller) -> None:
    """Sent in pieces, without a length."""
    pieces = (b"x" * 65536 for _ in range(MOST_BODY // 65536 + 1))
    answer = me.post("/media/url", content=pieces, headers={"Content-Type": "application/json"})
    assert problem(answer) == (413, "E_INVALID_REQUEST")


def test_all_users_of_an_address_share_one_media(me: Caller, you: Caller) -> None:
    """Each user sees nothing of the other, also not that they came first."""
    mine = data(me.post("/media/url", json={**ARTICLE, "url": ARTICLE["url"] + "?utm_source=my-newsletter"}))
    yours = data(you.post("/media/url", json=ARTICLE))
    assert yours == {"media_id": mine["media_id"], "created": True, "enqueued": False}
    seen = [data(who.get(f"/media/{mine['media_id']}")) for who in (me, you)]
    assert [media["canonical_url"] for media in seen] == [ARTICLE["url"]] * 2
    assert [media["requested_url"] for media in seen] == [
        ARTICLE["url"] + "?utm_source=my-newsletter",
        ARTICLE["url"],
    ]
    for path in ("/media", f"/media/{mine['media_id']}/history"):
        assert "my-newsletter" not in you.get(path).text
        assert str(me.user) not in you.get(path).text


def test_history_names_no_stranger(app: App, me: Caller, you: Caller) -> None:
    media_id = me.add(ARTICLE["url"])
    you.add(ARTICLE["url"])
    start_extraction(app, media_id)
    actors = [
        [event["actor"] for event in data(who.get(f"/media/{media_id}/history"))["items"]]
        for who in (me, you)
    ]
    assert actors == [["you", "worker"]] * 2


def test_a_submission_is_enqueued_only_if_there_is_an_extractor(me: Caller, you: Caller) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    assert data(me.post("/media/url", json=ARTICLE))["enqueued"] is True
    assert data(me.post("/media/url", json=ARTICLE))["enqueued"] is True  # it still waits
    assert data(me.post("/media/url", json={"kind": "video", "url": VIDEO}))["enqueued"] is False


def test_a_finished_media_is_not_enqueued_again(app: App, me: Caller) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    walk_media_to(app, me.add(ARTICLE["url"]), MediaStatus.READY_FOR_READING)
    assert data(me.post("/media/url", json=ARTICLE))["enqueued"] is False


def test_submitting_a_failed_address_retries_it(app: App, me: Caller, you: Caller) -> None:
    media_id = me.add(ARTICLE["url"])
    walk_media_to(app, media_id, MediaStatus.FAILED)
    again = data(you.post("/media/url", json=ARTICLE))
    assert (again["media_id"], again["created"]) == (str(media_id), True)
    assert status_of(app.sessions, media_id) is MediaStatus.PENDING


def test_a_new_video_is_pending_and_can_only_be_played(me: Caller) -> None:
    media = data(me.get(f"/media/{me.add(VIDEO, 'video')}"))
    assert media["processing_status"] == "pending"
    assert (media["provider"], media["provider_id"]) == ("youtube", "dQw4w9WgXcQ")
    assert media["external_playback_url"] == VIDEO
    assert media["capabilities"] == {**dict.fromkeys(CAPABILITIES, False), "can_play": True}
    assert media["may_retry"] is False
    assert media["processing_attempts"] == 0


@pytest.mark.parametrize("status", MediaStatus)
def test_capabilities_are_in_every_answer_with_a_media(app: App, me: Caller, status: MediaStatus) -> None:
    media_id = me.add()
    walk_media_to(app, media_id, status)
    one = data(me.get(f"/media/{media_id}"))
    assert one["processing_status"] == status.value
    assert set(one["capabilities"]) == CAPABILITIES
    assert one["capabilities"]["can_read"] is (
        status in {MediaStatus.READY_FOR_READING, MediaStatus.EMBEDDING, MediaStatus.READY}
    )
    assert one["may_retry"] is (status is MediaStatus.FAILED)
    assert data(me.get("/media"))["items"] == [one]
    assert data(me.get(f"/libraries/{me.default_library()}/media"))["items"] == [one]


def test_a_video_without_a_transcript_can_be_played(app: App, me: Caller) -> None:
    media_id = me.add(VIDEO, "video")
    attempt = start_extraction(app, media_id)
    fail_media(app, media_id, attempt, Stage.TRANSCRIBE, TranscriptUnavailable.code)
    media = data(me.get(f"/media/{media_id}"))
    assert media["failure_stage"] == "transcribe"
    assert media["last_error_code"] == "E_TRANSCRIPT_UNAVAILABLE"
    assert media["last_error_message"]
    assert media["capabilities"]["can_play"] is True
    assert media["capabilities"]["can_read"] is False


# --- retry ---


def test_retrying_a_failed_media_makes_it_pending(app: App, me: Caller) -> None:
    media_id = me.add()
    walk_media_to(app, media_id, MediaStatus.FAILED)
    answer = data(me.post(f"/media/{media_id}/retry"))
    assert answer == {"media_id": str(media_id), "enqueued": False}
    media = data(me.get(f"/media/{media_id}"))
    assert media["processing_status"] == "pending"
    names = ("failure_stage", "last_error_code", "last_error_message", "failed_at", "processing_started_at")
    assert [media[name] for name in names] == [None] * 5


def test_a_retry_with_an_extractor_is_enqueued(app: App, me: Caller) -> None:
    media_id = me.add()
    walk_media_to(app, media_id, MediaStatus.FAILED)
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    assert data(me.post(f"/media/{media_id}/retry"))["enqueued"] is True


@pytest.mark.parametrize("status", [status for status in MediaStatus if status is not MediaStatus.FAILED])
def test_only_failed_media_can_be_retried(app: App, me: Caller, status: MediaStatus) -> None:
    media_id = me.add()
    walk_media_to(app, media_id, status)
    before = row_of(app.sessions, media_id)
    assert problem(me.post(f"/media/{media_id}/retry")) == (409, "E_INVALID_STATE")
    assert row_of(app.sessions, media_id) == before


@pytest.mark.parametrize("status", [MediaStatus.FAILED, MediaStatus.READY])
def test_a_user_without_rights_is_refused_before_the_status_is_checked(
    app: App, me: Caller, you: Caller, site: Site, status: MediaStatus
) -> None:
    """And does not learn its state."""
    media_id = me.add()
    walk_media_to(app, media_id, status)
    share_media(app, me.user, media_id, (you.user, Role.MEMBER))
    assert problem(you.post(f"/media/{media_id}/retry")) == (403, "E_FORBIDDEN")
    assert data(you.get(f"/media/{media_id}"))["may_retry"] is False
    assert problem(site.caller().post(f"/media/{media_id}/retry")) == (404, "E_NOT_FOUND")
    assert status_of(app.sessions, media_id) is status


def test_an_admin_may_retry_a_media(app: App, me: Caller, you: Caller) -> None:
    media_id = me.add()
    walk_media_to(app, media_id, MediaStatus.FAILED)
    share_media(app, me.user, media_id, (you.user, Role.ADMIN))
    assert data(you.get(f"/media/{media_id}"))["may_retry"] is True
    assert data(you.post(f"/media/{media_id}/retry"))["media_id"] == str(media_id)


def test_a_creator_who_can_not_see_a_media_may_not_retry_it(app: App, me: Caller, you: Caller) -> None:
    media_id = me.add(ARTICLE["url"])
    you.add(ARTICLE["url"])
    walk_media_to(app, media_id, MediaStatus.FAILED)
    data(me.delete(f"/media/{media_id}"))
    assert problem(me.post(f"/media/{media_id}/retry")) == (404, "E_NOT_FOUND")


# --- delete ---


def test_a_deleted_media_is_gone_for_its_user(app: App, me: Caller) -> None:
    media_id = me.add()
    assert data(me.delete(f"/media/{media_id}")) == {"done": True}
    for path in ("", "/fragments", "/history"):
        assert problem(me.get(f"/media/{media_id}{path}")) == (404, "E_NOT_FOUND")
    assert problem(me.delete(f"/media/{media_id}")) == (404, "E_NOT_FOUND")
    assert row_of(app.sessions, media_id) is None
    assert history_of(app.sessions, media_id) == []


def test_a_media_deleted_by_one_user_stays_for_others(me: Caller, you: Caller) -> None:
    media_id = me.add(ARTICLE["url"])
    you.add(ARTICLE["url"])
    data(me.delete(f"/media/{media_id}"))
    assert problem(me.get(f"/media/{media_id}")) == (404, "E_NOT_FOUND")
    assert data(you.get(f"/media/{media_id}"))["id"] == str(media_id)


def test_a_member_may_not_delete_a_shared_media(app: App, me: Caller, you: Caller) -> None:
    media_id = me.add()
    share_media(app, me.user, media_id, (you.user, Role.MEMBER))
    assert problem(you.delete(f"/media/{media_id}")) == (403, "E_FORBIDDEN")
    assert data(me.get(f"/media/{media_id}"))


def test_a_deleted_address_can_be_submitted_again(me: Caller) -> None:
    media_id = me.add(ARTICLE["url"])
    data(me.delete(f"/media/{media_id}"))
    again = data(me.post("/media/url", json=ARTICLE))
    assert again["created"] is True
    assert again["media_id"] != str(media_id)


# --- lists ---


def pages(caller: Caller, path: str, **params: object) -> list[list[dict]]:
    """Every page, from the first to the last."""
    found, cursor = [], None
    while True:
        page = data(caller.get(path, params={**params, **({"cursor": cursor} if cursor else {})}))
        found.append(page["items"])
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def test_a_list_of_media_comes_in_pages(me: Caller, you: Caller, clock: SetClock) -> None:
    added = []
    for number in range(7):
        clock.forward(seconds=number % 3)  # some of them at the same time
        added.append(str(me.add()))
        you.add()
    found = pages(me, "/media", limit=3)
    assert [len(page) for page in found] == [3, 3, 1]
    items = [item for page in found for item in page]
    assert sorted(item["id"] for item in items) == sorted(added)
    order = [(item["created_at"], item["id"]) for item in items]
    assert order == sorted(order, reverse=True)


def test_a_list_of_media_is_stable_while_it_is_paged(me: Caller, clock: SetClock) -> None:
    added = [str(me.add()) for _ in range(4) if clock.forward(seconds=1) is None]
    first = data(me.get("/media", params={"limit": 2}))
    clock.forward(seconds=1)
    me.add()
    second = data(me.get("/media", params={"limit": 2, "cursor": first["next_cursor"]}))
    assert [item["id"] for item in first["items"] + second["items"]] == added[::-1]
    assert second["next_cursor"] is None


def test_a_list_of_media_can_be_filtered_by_status(app: App, me: Caller, clock: SetClock) -> None:
    for status in (MediaStatus.FAILED, MediaStatus.PENDING) * 3:
        clock.forward(seconds=1)
        walk_media_to(app, me.add(), status)
    found = pages(me, "/media", limit=2, status="failed")
    assert [[item["processing_status"] for item in page] for page in found] == [["failed"] * 2, ["failed"]]
    assert data(me.get("/media", params={"status": "ready"}))["items"] == []


def test_a_list_of_media_can_be_filtered_by_library(me: Caller, you: Caller) -> None:
    library, media_id = me.library(), me.add()
    me.add()
    data(me.post(f"/libraries/{library}/media", json={"media_id": str(media_id)}))
    for path, params in (("/media", {"library_id": library}), (f"/libraries/{library}/media", {})):
        assert [item["id"] for item in data(me.get(path, params=params))["items"]] == [str(media_id)]
    assert problem(you.get("/media", params={"library_id": library})) == (404, "E_NOT_FOUND")
    assert problem(me.get("/media", params={"library_id": str(uuid4())})) == (404, "E_NOT_FOUND")


def test_a_media_in_two_libraries_is_listed_once(me: Caller, clock: SetClock) -> None:
    library = me.library()
    for _ in range(5):
        clock.forward(seconds=1)
        media_id = me.add()
        clock.forward(seconds=1)
        data(me.post(f"/libraries/{library}/media", json={"media_id": str(media_id)}))
    ids = [item["id"] for page in pages(me, "/media", limit=2) for item in page]
    assert len(ids) == len(set(ids)) == 5


def test_invalid_list_requests_are_refused(me: Caller) -> None:
    wrong = {
        "limit": (0, 201, "x"),
        "status": ("nonsense", ""),
        "library_id": ("x",),
        "cursor": ("x", "", "é", "x" * 201),
    }
    for name, values in wrong.items():
        for value in values:
            answer = me.get("/media", params={name: value})
            assert problem(answer) == (400, "E_INVALID_REQUEST"), (name, value)


def test_fragments_are_listed_in_order(app: App, me: Caller) -> None:
    media_id = me.add()
    assert data(me.get(f"/media/{media_id}/fragments"))["items"] == []
    walk_media_to(app, media_id, MediaStatus.READY_FOR_READING)
    expected = data(me.get(f"/media/{media_id}/fragments"))["items"]
    found = [(piece["position"], piece["text"], piece["html"]) for piece in expected]
    assert found == [(place, text, None) for place, text in enumerate(TEXTS)]
    assert len({UUID(piece["id"]) for piece in expected}) == len(TEXTS)
    assert pages(me, f"/media/{media_id}/fragments", limit=1) == [[piece] for piece in expected]


def test_history_is_listed_in_order(app: App, me: Caller) -> None:
    media_id = me.add()
    walk_media_to(app, media_id, MediaStatus.FAILED)
    data(me.post(f"/media/{media_id}/retry"))
    events = data(me.get(f"/media/{media_id}/history"))["items"]
    assert [
        (event["event"], event["from_status"], event["to_status"], event["actor"]) for event in events
    ] == [
        ("create", None, "pending", "you"),
        ("start", "pending", "extracting", "worker"),
        ("fail", "extracting", "failed", "worker"),
        ("retry", "failed", "pending", "you"),
    ]
    assert [event["error_code"] for event in events] == [None, None, "E_EXTRACTION_FAILED", None]
    assert pages(me, f"/media/{media_id}/history", limit=3) == [events[:3], events[3:]]


# --- request ids ---


def test_a_request_id_is_kept(me: Caller) -> None:
    for given in ("a", "A-b.c_9", "x" * 128):
        for path in ("/media", f"/media/{uuid4()}", "/nowhere", "/healthz"):
            assert me.get(path, headers={"X-Request-ID": given}).headers["x-request-id"] == given
        refused = me.post("/media/url", json={}, headers={"X-Request-ID": given})
        assert refused.json()["error"]["request_id"] == given


def test_a_bad_request_id_is_replaced(me: Caller) -> None:
    ids = [
        me.get(path, headers={"X-Request-ID": given}).headers["x-request-id"]
        for path in ("/media", "/nowhere")
        for given in (b"", b"x" * 129, b"a b", b"a/b", b"\xff", b"a;b", b"<script>", b"%0a")
    ]
    assert all(re.fullmatch("[0-9a-f]{32}", made) for made in ids)
    assert len(set(ids)) == 16


def test_the_request_id_is_passed_on_to_the_work(app: App, me: Caller) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    answer = data(me.post("/media/url", json=ARTICLE, headers={"X-Request-ID": "from-me"}))
    assert row_of(app.sessions, UUID(answer["media_id"])).request_id == "from-me"


# --- allowances ---


@pytest.fixture
def limited(database_url: str, tmp_path: Path, clock: SetClock) -> Iterator[Site]:
    app = build(make_settings(database_url, tmp_path, quota_ingest_urls=2), clock)
    with serve(app) as running:
        yield running
    app.close()


def test_a_used_up_allowance_is_429_until_the_next_day(limited: Site, clock: SetClock) -> None:
    me, you = limited.caller(), limited.caller()
    me.add()
    me.add()
    refused = me.post("/media/url", json=ARTICLE)
    assert problem(refused) == (429, "E_RATE_LIMITED")
    assert len(data(me.get("/media"))["items"]) == 2
    assert data(you.post("/media/url", json=ARTICLE))["created"] is True
    clock.forward(days=1, seconds=1)
    assert data(me.post("/media/url", json=ARTICLE))["created"] is True


def test_submitting_a_known_address_uses_up_no_allowance(limited: Site) -> None:
    me = limited.caller()
    for _ in range(3):
        me.add(ARTICLE["url"])
    me.add()
    assert problem(me.post("/media/url", json={**ARTICLE, "url": "https://example.com/3"}))[0] == 429


def test_a_refused_address_uses_up_no_allowance(limited: Site) -> None:
    me = limited.caller()
    for _ in range(3):
        assert me.post("/media/url", json={**ARTICLE, "url": "rubbish"}).status_code == 400
    me.add()
    me.add()
