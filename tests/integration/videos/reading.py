"""A video, read as a worker reads it, and what came of it."""

from uuid import UUID

from nexus.app import App
from nexus.extract.recording import Recording
from nexus.media import revisions
from nexus.media.recordings import find_recording
from nexus.media.workbench import Tools
from nexus.states.media import MediaStatus
from tests.kit.media import new_media, row_of, status_of
from tests.kit.servers.video_sites import VIDEO_ID
from tests.kit.work import extract_item

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
