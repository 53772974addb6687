"""Retry: only of failed media, only by users with rights, and without a trace of the failure."""

from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.db.session import Statement
from nexus.db.tables import insert_all
from nexus.errors import Forbidden, InvalidState, NotFound
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction
from nexus.libraries import access
from nexus.libraries.access import Role
from nexus.media import submit
from nexus.media.add import add_url
from nexus.media.lifecycle import retry_media
from nexus.media.revisions import TEXT, text_rows
from nexus.media.texts import Found, Readable
from nexus.states.media import Kind, MediaStatus, Stage
from tests.kit.clock import SetClock
from tests.kit.media import (
    TEXTS,
    events_of,
    everything_of,
    fail_media,
    finish_embedding,
    good_extractor,
    history_of,
    new_file,
    new_media,
    publish_text,
    row_of,
    share_media,
    start_embedding,
    start_extraction,
    status_of,
    walk_media_to,
)
from tests.kit.work import extract_item

CLEARED = (
    "failure_stage",
    "last_error_code",
    "last_error_message",
    "failed_at",
    "processing_started_at",
    "processing_completed_at",
    "lease_expires_at",
)
_LEFTOVERS = [Statement(insert_all(table)) for table in TEXT]


def retry(app: App, media_id: UUID, user: UUID) -> None:
    with app.sessions.begin() as session:
        retry_media(session, media_id, user)


def failed_file(app: App, user: UUID, stage: Stage) -> UUID:
    """A stored upload that failed at a stage and left fragments behind."""
    media_id = new_file(app, user, "c" * 64, stored=True)
    attempt = start_extraction(app, media_id)
    half = Readable.of(media_id, attempt, Found(Extraction.plain(None, "half of it"), "tests"))
    with app.sessions.begin() as session:
        for statement, rows in zip(_LEFTOVERS, text_rows([half], session.now).values(), strict=True):
            for row in rows:
                session.run(statement, **row, number=1, revision=1)
    assert fail_media(app, media_id, attempt, stage, "E_ANY", "It failed.")
    return media_id


@pytest.mark.parametrize("stage", [Stage.UPLOAD, Stage.EXTRACT, Stage.TRANSCRIBE, Stage.OTHER])
def test_a_retry_leaves_no_trace_of_the_failure(app: App, clock: SetClock, stage: Stage) -> None:
    user = uuid4()
    media_id = failed_file(app, user, stage)
    clock.forward(seconds=1)
    retry(app, media_id, user)
    after = everything_of(app.sessions, media_id)
    assert (after.row.processing_status, after.row.status_before) == ("pending", "failed")
    assert [getattr(after.row, name) for name in CLEARED] == [None] * len(CLEARED)
    assert (after.row.tries, after.row.run_after) == (0, clock())
    assert after.row.processing_attempts == 1
    assert after.texts == []
    kept = stage is not Stage.UPLOAD
    assert (len(after.files), after.row.file_sha256) == ((1, "c" * 64) if kept else (0, None))


def test_a_retried_upload_waits_for_its_bytes(app: App) -> None:
    user = uuid4()
    media_id = new_file(app, user, None)
    fail_media(app, media_id, None, Stage.UPLOAD, "E_UPLOAD_FAILED", "It never came.")
    retry(app, media_id, user)
    assert status_of(app.sessions, media_id) is MediaStatus.PENDING
    AVAILABLE_EXTRACTORS[Kind.PDF] = good_extractor
    assert extract_item(app.tools, media_id) is None
    assert events_of(app.sessions, media_id) == ["create", "fail", "retry"]


def test_retrying_a_failed_embedding_keeps_the_text(app: App, clock: SetClock) -> None:
    user = uuid4()
    media_id = new_media(app, user)
    attempt = walk_media_to(app, media_id, MediaStatus.EMBEDDING)
    fail_media(app, media_id, attempt, Stage.EMBED, "E_EMBEDDING_FAILED", "No vectors.")
    clock.forward(seconds=1)
    retry(app, media_id, user)
    after = everything_of(app.sessions, media_id)
    assert after.row.processing_status == "ready_for_reading"
    assert [getattr(after.row, name) for name in CLEARED] == [None] * len(CLEARED)
    assert (after.row.tries, after.row.processing_attempts) == (0, 2)
    assert after.texts == list(TEXTS)
    assert after.history[-1].event == "retry_embedding"
    assert finish_embedding(app, media_id, start_embedding(app, media_id))
    assert row_of(app.sessions, media_id).processing_completed_at == clock()


def test_a_retried_media_keeps_counting_attempts_so_that_old_results_stay_stale(app: App) -> None:
    user = uuid4()
    media_id = new_media(app, user)
    old = walk_media_to(app, media_id, MediaStatus.FAILED)
    retry(app, media_id, user)
    new = start_extraction(app, media_id)
    assert new == old + 1
    assert not publish_text(app, media_id, old)
    assert publish_text(app, media_id, new)
    assert everything_of(app.sessions, media_id).texts == list(TEXTS)


@pytest.mark.parametrize("status", [status for status in MediaStatus if status is not MediaStatus.FAILED])
def test_retrying_a_media_that_has_not_failed_is_refused(app: App, status: MediaStatus) -> None:
    user = uuid4()
    media_id = new_media(app, user)
    walk_media_to(app, media_id, status)
    before = everything_of(app.sessions, media_id)
    with pytest.raises(InvalidState):
        retry(app, media_id, user)
    assert everything_of(app.sessions, media_id) == before
    assert (InvalidState.code, InvalidState.status) == ("E_INVALID_STATE", 409)


def test_the_second_of_two_retries_is_refused(app: App) -> None:
    user = uuid4()
    media_id = new_media(app, user)
    walk_media_to(app, media_id, MediaStatus.FAILED)
    retry(app, media_id, user)
    with pytest.raises(InvalidState):
        retry(app, media_id, user)
    assert events_of(app.sessions, media_id).count("retry") == 1


def test_the_creator_and_admins_of_a_holding_library_may_retry(app: App) -> None:
    creator, admin = uuid4(), uuid4()
    media_id = new_media(app, creator)
    share_media(app, creator, media_id, (admin, Role.ADMIN))
    for actor in (creator, admin):
        attempt = start_extraction(app, media_id)
        fail_media(app, media_id, attempt)
        retry(app, media_id, actor)
        assert history_of(app.sessions, media_id)[-1].actor == str(actor)


def test_a_member_may_not_retry_and_is_told_so(app: App) -> None:
    creator, member = uuid4(), uuid4()
    media_id = new_media(app, creator)
    share_media(app, creator, media_id, (member, Role.MEMBER))
    walk_media_to(app, media_id, MediaStatus.FAILED)
    before = everything_of(app.sessions, media_id)
    with pytest.raises(Forbidden):
        retry(app, media_id, member)
    assert everything_of(app.sessions, media_id) == before


def test_a_stranger_is_not_told_that_the_media_exists(app: App) -> None:
    media_id = new_media(app)
    walk_media_to(app, media_id, MediaStatus.FAILED)
    with app.sessions.begin() as session:
        access.ensure_user(session, stranger := uuid4())
    before = everything_of(app.sessions, media_id)
    with pytest.raises(NotFound) as of_existing:
        retry(app, media_id, stranger)
    with pytest.raises(NotFound) as of_nothing:
        retry(app, uuid4(), stranger)
    assert of_existing.value.message == of_nothing.value.message
    assert everything_of(app.sessions, media_id) == before


def test_rights_to_retry_are_checked_before_the_state(app: App) -> None:
    creator, member = uuid4(), uuid4()
    media_id = new_media(app, creator)
    share_media(app, creator, media_id, (member, Role.MEMBER))
    with pytest.raises(Forbidden):
        retry(app, media_id, member)
    with pytest.raises(NotFound):
        retry(app, media_id, uuid4())


# a URL that is submitted again


def test_submitting_a_failed_url_again_reuses_and_retries_its_row(app: App) -> None:
    first, second = uuid4(), uuid4()
    media_id = new_media(app, first, "https://example.com/one")
    walk_media_to(app, media_id, MediaStatus.FAILED)
    with app.sessions.begin() as session:
        added = add_url(session, second, "web_article", "https://EXAMPLE.com/one?utm_source=x", {})
    assert (added.media_id, added.created, added.due) == (media_id, True, True)
    assert status_of(app.sessions, media_id) is MediaStatus.PENDING
    assert history_of(app.sessions, media_id)[-1].actor == str(second)
    assert len(everything_of(app.sessions, media_id).holders) == 2


@pytest.mark.parametrize("status", [status for status in MediaStatus if status is not MediaStatus.FAILED])
def test_submitting_a_url_again_leaves_its_media_alone(app: App, status: MediaStatus) -> None:
    user = uuid4()
    media_id = new_media(app, user, "https://example.com/one")
    walk_media_to(app, media_id, status)
    before = everything_of(app.sessions, media_id)
    with app.sessions.begin() as session:
        added = add_url(session, user, "web_article", "https://example.com/one#part", {})
    assert (added.media_id, added.created) == (media_id, False)
    assert added.due == (status is MediaStatus.PENDING)
    assert everything_of(app.sessions, media_id) == before


def test_one_url_is_one_media_per_kind(app: App) -> None:
    article = new_media(app, url="https://example.com/one")
    video = new_media(app, url="https://example.com/one", kind="video")
    assert article != video
    assert new_media(app, url="https://example.com/one", kind="video") == video


def test_every_spelling_of_a_youtube_video_is_one_media(app: App) -> None:
    spellings = ("watch?v=dQw4w9WgXcQ&t=3", "embed/dQw4w9WgXcQ", "shorts/dQw4w9WgXcQ?x=1")
    found = {new_media(app, url=f"https://www.youtube.com/{path}", kind="video") for path in spellings}
    found.add(new_media(app, url="https://youtu.be/dQw4w9WgXcQ?si=abc", kind="video"))
    assert len(found) == 1
    row = row_of(app.sessions, found.pop())
    assert (row.provider, row.provider_id) == ("youtube", "dQw4w9WgXcQ")
    assert row.canonical_url == row.external_playback_url == "https://www.youtube.com/watch?v=dQw4w9WgXcQ"


def test_a_whole_retry_request_announces_only_what_can_be_extracted(app: App) -> None:
    user = uuid4()
    media_id = new_media(app, user)
    walk_media_to(app, media_id, MediaStatus.FAILED)
    assert submit.retry_failed_item(app.sessions, app.queue, media_id, user) is False
    fail_media(app, media_id, start_extraction(app, media_id))
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    assert submit.retry_failed_item(app.sessions, app.queue, media_id, user) is True
