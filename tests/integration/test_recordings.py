"""What is known about videos and episodes: what is kept of it, and which item is which video."""

from uuid import UUID, uuid4

import pytest

from nexus.app import App, kernel_for
from nexus.db.rows import MediaRow
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.extract.recording import NamedTranscript, Recording, TimedChapter
from nexus.libraries import access
from nexus.libraries.catalog import hold_media, remove_media
from nexus.media import refresh
from nexus.media.recordings.facts import find_recording, keep_recording, know_as, name_item
from nexus.media.refresh import REFRESH
from nexus.queue import Work
from nexus.queue.local import LocalQueue
from nexus.states.media import Kind
from tests.kit.media import new_media, row_of
from tests.kit.work import extract_item

VIDEO = "https://video.example/one"


def keep(app: App, media_id: UUID, found: Recording) -> Recording:
    with app.sessions.begin() as session:
        keep_recording(session, media_id, found)
        name_item(session, media_id, found)
    with app.sessions.read() as session:
        row = find_recording(session, media_id)
    assert row is not None
    return row.recording


def media_row(app: App, media_id: UUID) -> MediaRow:
    row: MediaRow = row_of(app.sessions, media_id)
    return row


def test_what_is_found_out_is_kept_as_it_is(app: App) -> None:
    found = Recording(
        title="On tides",
        author="A. Mariner",
        site="Video Example",
        published="2026-01-31T10:00:00Z",
        language="en",
        seconds=62.5,
        picture_url="https://video.example/p.jpg",
        embed_url="https://video.example/embed/1",
        notes="<p>Notes.</p>",
        chapters=(TimedChapter(0.0, "Start"), TimedChapter(12.5, "Ebb")),
        transcripts=(NamedTranscript("https://video.example/t.vtt", "text/vtt", "en", "captions"),),
        audio_url="https://video.example/a.mp3",
        audio_type="audio/mpeg",
        audio_bytes=1234,
    )
    media_id = new_media(app, url=VIDEO, kind="video")
    assert keep(app, media_id, found) == found
    assert media_row(app, media_id).title == "On tides"


def test_a_title_that_is_there_stays(app: App) -> None:
    media_id = new_media(app, url=VIDEO, kind="video")
    keep(app, media_id, Recording(title="First"))
    assert keep(app, media_id, Recording(title="Second")).title == "Second"
    assert media_row(app, media_id).title == "First"


def test_a_refresh_leaves_the_words_that_others_have_saved(app: App) -> None:
    """The owner of a page can't rewrite the notes that somebody saved, because somebody else refreshes it."""
    first, other, said = uuid4(), uuid4(), "First"

    def extract(source: Source) -> Extraction:
        found = Recording(notes=f"<p>{said}</p>", audio_url=f"https://video.example/{said}.mp3")
        source.bench.keep_recording(found)
        return Extraction.plain("On tides", "It ebbs.")

    def known() -> tuple[str | None, str | None]:
        with app.sessions.read() as session:
            row = find_recording(session, media_id)
        assert row is not None
        return row.notes, row.audio_url

    def refreshed_by(user: UUID) -> None:
        asked, _ = refresh.request(app.sessions, LocalQueue(), media_id, user, None)
        kernel_for(app.tools).run(Work(REFRESH, asked))

    AVAILABLE_EXTRACTORS[Kind.VIDEO] = extract
    media_id = new_media(app, first, VIDEO, "video")
    extract_item(app.tools, media_id)
    with app.sessions.begin() as session:
        hold_media(session, access.ensure_user(session, other), media_id)
    said = "Second"
    refreshed_by(other)
    assert known() == ("<p>First</p>", "https://video.example/Second.mp3")
    with app.sessions.begin() as session:
        remove_media(session, access.default_library(session, first), media_id, first)
    refreshed_by(other)
    assert known() == ("<p>Second</p>", "https://video.example/Second.mp3")


def test_nothing_is_kept_that_a_database_cant_hold_or_a_page_should_not_show(app: App) -> None:
    found = Recording(
        title="A\x00 title\n of two lines" + "x" * 5000,
        author=" \x00 ",
        published="\ud800",
        seconds=float("nan"),
        picture_url="javascript:alert(1)",
        embed_url="data:text/html,x",
        notes="<script>alert(1)</script>",
        chapters=(
            TimedChapter(float("inf"), "Endless"),
            TimedChapter(-1.0, "Before"),
            TimedChapter(1.0, "\x00"),
            TimedChapter(2.0, "Good"),
        ),
        transcripts=(
            NamedTranscript("file:///etc/passwd"),
            NamedTranscript("https://a.example/" + "x" * 3000),
        ),
        audio_url="https://a.example/a b.mp3",
        audio_bytes=-1,
    )
    media_id = new_media(app, url=VIDEO, kind="video")
    kept = keep(app, media_id, found)
    assert kept.title is not None
    assert kept.title.startswith("A title of two linesxxx")
    assert len(kept.title) == 1000
    assert kept == Recording(title=kept.title, chapters=(TimedChapter(2.0, "Good"),))


@pytest.mark.parametrize("size", [2**63, 2**200])
def test_an_absurd_size_is_no_size(app: App, size: int) -> None:
    media_id = new_media(app, url=VIDEO, kind="video")
    assert keep(app, media_id, Recording(audio_bytes=size, seconds=float(size))) == Recording()


def test_an_item_is_known_as_a_video_unless_another_is(app: App) -> None:
    one, other = (new_media(app, url=f"{VIDEO}/{n}", kind="video") for n in range(2))
    for media_id in (one, other):
        know_as(app.sessions, media_id, Kind.VIDEO, "peertube", "abc@tube.example")
    assert media_row(app, one).provider_id == "abc@tube.example"
    assert (media_row(app, other).provider, media_row(app, other).provider_id) == (None, None)


def test_an_item_keeps_the_id_that_it_has(app: App) -> None:
    media_id = new_media(app, url="https://youtu.be/dQw4w9WgXcQ", kind="video")
    know_as(app.sessions, media_id, Kind.VIDEO, "vimeo", "1")
    assert media_row(app, media_id).provider_id == "dQw4w9WgXcQ"


def test_an_id_that_is_too_long_is_not_kept(app: App) -> None:
    media_id = new_media(app, url=VIDEO, kind="video")
    know_as(app.sessions, media_id, Kind.VIDEO, "peertube", "x" * 65)
    assert media_row(app, media_id).provider_id is None


def test_a_vimeo_video_that_was_added_before_its_id_was_known_is_found_by_its_address(app: App) -> None:
    old = new_media(app, url="https://video.example/7", kind="video")
    know_as(app.sessions, old, Kind.VIDEO, "vimeo", "7")
    assert new_media(app, url="https://player.vimeo.com/video/7", kind="video") == old
    assert new_media(app, url="https://vimeo.com/7/0123456789", kind="video") != old
