"""What an item waits for, and how often it has waited: on both databases."""

from uuid import UUID

from nexus.app import App
from nexus.errors import FetchBusy, FetchFailed, ProviderBlocked, WorkError
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.media.lifecycle import retry_media
from nexus.media.waits import count_waits, reason_of_wait
from nexus.states.media import Kind, MediaStatus
from tests.kit.clock import SetClock
from tests.kit.media import good_extractor, new_media, row_of, status_of
from tests.kit.users import new_user
from tests.kit.work import extract_item


def fail(app: App, clock: SetClock, media_id: UUID, *errors: WorkError) -> None:
    for error in errors:

        def extract(_: Source, error: WorkError = error) -> Extraction:
            raise error

        AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
        clock.time = max(clock.time, row_of(app.sessions, media_id).run_after)
        extract_item(app.tools, media_id)


def waits(app: App, media_id: UUID) -> int:
    with app.sessions.read() as session:
        return count_waits(session, media_id, ProviderBlocked())


def test_waits_are_counted_until_anything_else_becomes_of_an_item(app: App, clock: SetClock) -> None:
    user = new_user(app)
    media_id, other = new_media(app, user), new_media(app, user, "https://example.com/other")
    assert waits(app, media_id) == 0
    fail(app, clock, other, ProviderBlocked())
    fail(app, clock, media_id, ProviderBlocked(), FetchBusy(), ProviderBlocked())
    assert waits(app, media_id) == 2
    fail(app, clock, media_id, FetchFailed(), FetchFailed(), FetchFailed())
    assert status_of(app.sessions, media_id) is MediaStatus.FAILED
    assert waits(app, media_id) == 0
    with app.sessions.begin() as session:
        retry_media(session, media_id, user)
    fail(app, clock, media_id, ProviderBlocked())
    assert waits(app, media_id) == 1


def test_the_reason_of_a_wait_is_known_as_long_as_it_waits(app: App, clock: SetClock) -> None:
    media_id = new_media(app)

    def reason() -> str | None:
        with app.sessions.read() as session:
            return reason_of_wait(session, media_id)

    assert reason() is None
    fail(app, clock, media_id, ProviderBlocked())
    assert reason() == "E_PROVIDER_BLOCKED"
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    clock.time = row_of(app.sessions, media_id).run_after
    extract_item(app.tools, media_id)
    assert reason() is None
