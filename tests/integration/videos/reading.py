"""A video, read as a worker reads it, and what came of it."""

from uuid import UUID

from nexus.app import App
from nexus.extract.recording import Recording
from nexus.media import revisions
from nexus.media.recordings.facts import find_recording
from nexus.media.workbench import Tools
from nexus.states.media import MediaStatus
from tests.kit.media import everything_of, new_media, row_of, status_of
from tests.kit.servers.video_sites import VIDEO_ID
from tests.kit.work import extract_item

SAID = "The water rises for six hours."
URL = f"https://youtu.be/{VIDEO_ID}"


def read_video(app: App, tools: Tools, url: str = URL) -> UUID:
    media_id = new_media(app, url=url, kind="video")
    extract_item(tools, media_id)
    return media_id


def recording_of(app: App, media_id: UUID) -> Recording | None:
    with app.sessions.read() as session:
        found = find_recording(session, media_id)
    return None if found is None else found.recording


def failure_of(app: App, media_id: UUID) -> tuple[str | None, str | None]:
    row = row_of(app.sessions, media_id)
    assert status_of(app.sessions, media_id) is MediaStatus.FAILED
    return row.failure_stage, row.last_error_code


def revision_source(app: App, media_id: UUID) -> str | None:
    with app.sessions.read() as session:
        found = revisions.read_revision(session, media_id, 1)
    assert found is not None
    return found.source


def text_of(app: App, media_id: UUID) -> str:
    assert status_of(app.sessions, media_id) is MediaStatus.READY_FOR_READING
    return "\n\n".join(everything_of(app.sessions, media_id).texts)


def player_page(tracks: str = "", head: str = "") -> bytes:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>On tides | The Example</title>'
        '<meta property="og:title" content="On tides"><meta property="og:site_name" content="The Example">'
        f'{head}</head><body><h1>On tides</h1><video poster="/p.jpg">'
        f'<source src="tides.mp4" type="video/mp4">{tracks}</video></body></html>'
    ).encode()
