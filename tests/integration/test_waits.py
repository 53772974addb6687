"""What an item waits for, on both databases."""

from nexus.app import App
from nexus.errors import ProviderBlocked
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.media.waits import reason_of_wait
from nexus.states.media import Kind
from tests.kit.clock import SetClock
from tests.kit.media import good_extractor, new_media, row_of
from tests.kit.work import extract_item


def blocked(_: Source) -> Extraction:
    raise ProviderBlocked


def test_the_reason_of_a_wait_is_known_as_long_as_it_waits(app: App, clock: SetClock) -> None:
    media_id = new_media(app)

    def reason() -> str | None:
        with app.sessions.read() as session:
            return reason_of_wait(session, media_id)

    assert reason() is None
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = blocked
    extract_item(app.tools, media_id)
    assert reason() == "E_PROVIDER_BLOCKED"
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    clock.time = row_of(app.sessions, media_id).run_after
    extract_item(app.tools, media_id)
    assert reason() is None
