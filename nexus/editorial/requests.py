"""Whole requests of an editor: check that they may see the job or story, do it, and tell a worker after the commit.

The API takes steps while its caller waits; the pages leave them to a worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from nexus.db.rows import JobRow, StoryRow
from nexus.db.session import Session, Sessions
from nexus.editorial import drafts, jobs, leaving, queries, steps, stories
from nexus.editorial.steps import STEP, Taken
from nexus.editorial.stories import Wording
from nexus.errors import InvalidRequest, InvalidState
from nexus.libraries import access
from nexus.media.workbench import Tools
from nexus.queue import Queue, Work
from nexus.states.job import HELD

TOO_LATE = "Text is entered before a draft is made. Make a new job for another text."


@dataclass(frozen=True)
class NewJob:
    """What a job is to be made from: an address, a text with its title, both, or an item that can be read."""

    url: str | None = None
    title: str | None = None
    text: str | None = None
    media_id: UUID | None = None
    #: The viewer's default library if None.
    library_id: UUID | None = None

    @property
    def is_entered(self) -> bool:
        return self.title is not None or self.text is not None


def create_job(tools: Tools, viewer: UUID, new: NewJob) -> JobRow:
    """Create a job: QUEUED with an address alone, ready for a draft with a text or an item.

    Raises InvalidRequest, InvalidUrl, RateLimited, NotFound, Forbidden, JobNotReady.
    """
    if new.media_id is not None and (new.is_entered or new.url is not None):
        raise InvalidRequest("Give a mediaId alone: its text and address are known.")
    if new.media_id is None and new.url is None and new.text is None:
        raise InvalidRequest("Give a url, or title and text, or a mediaId.")
    with tools.sessions.begin() as session:
        job_id = _create(session, tools, viewer, new)
    return steps.present(tools, job_id)


def create_job_and_fetch(
    tools: Tools, queue: Queue, viewer: UUID, new: NewJob, request_id: str | None = None
) -> UUID:
    """Create a job, and leave the fetch of its page to a worker unless its text is given."""
    with tools.sessions.begin() as session:
        job_id = _create(session, tools, viewer, new)
    if not new.is_entered:
        leaving.leave_fetch(tools, job_id, str(viewer), request_id=request_id)
        queue.announce(Work(STEP, job_id))
    return job_id


def _create(session: Session, tools: Tools, viewer: UUID, new: NewJob) -> UUID:
    library_id = new.library_id or access.ensure_user(session, viewer)
    if new.media_id is not None:
        return drafts.adopt(session, viewer, library_id, new.media_id)
    job_id = jobs.create(session, viewer, library_id, new.url, tools.limits)
    if new.is_entered:
        jobs.enter(session, job_id, new.title or "", new.text or "", str(viewer))
    return job_id


def fetch_job(
    tools: Tools,
    queue: Queue,
    viewer: UUID,
    job_id: UUID,
    request_id: str | None = None,
    *,
    again: bool = False,
) -> JobRow:
    """Fetch a job's page now, with `again` that of one which failed; its text is left to a worker.

    Raises NotFound, InvalidState.
    """
    with tools.sessions.begin() as session:
        queries.find(session, job_id, viewer)
        if again and not jobs.retry(session, job_id, str(viewer)):
            raise InvalidState(leaving.NOT_TO_RETRY)
    job = steps.fetch(tools, job_id, str(viewer), request_id)
    if job.status in HELD:
        queue.announce(Work(STEP, job_id))
    return job


def leave_fetch(
    tools: Tools,
    queue: Queue,
    viewer: UUID,
    job_id: UUID,
    request_id: str | None = None,
    *,
    again: bool = False,
) -> None:
    """Leave the fetch of a job's page to a worker, with `again` that of one which failed. Raises NotFound,
    InvalidState."""
    _require_visible(tools.sessions, viewer, job_id)
    leaving.leave_fetch(tools, job_id, str(viewer), again=again, request_id=request_id)
    queue.announce(Work(STEP, job_id))


def extract_job(tools: Tools, viewer: UUID, job_id: UUID) -> Taken:
    """Take title and text out of a job's page now. Raises NotFound, JobNotReady."""
    _require_visible(tools.sessions, viewer, job_id)
    return steps.extract(tools, job_id, str(viewer))


def draft_job(tools: Tools, viewer: UUID, job_id: UUID, *, again: bool = False) -> JobRow:
    """Write a job's draft now, with `again` another one. Raises NotFound, RateLimited, JobNotReady, InvalidState."""
    _require_visible(tools.sessions, viewer, job_id)
    job = drafts.begin(tools, job_id, viewer, again=again, lease=tools.leases.length)
    steps.write_draft(tools, job, str(viewer))
    return steps.present(tools, job_id)


def leave_draft(
    tools: Tools,
    queue: Queue,
    viewer: UUID,
    job_id: UUID,
    request_id: str | None = None,
    *,
    again: bool = False,
) -> None:
    """Leave a job's draft to a worker, with `again` another one. Raises as `draft_job` does."""
    _require_visible(tools.sessions, viewer, job_id)
    drafts.begin(tools, job_id, viewer, again=again, request_id=request_id)
    queue.announce(Work(STEP, job_id))


def enter_text(tools: Tools, viewer: UUID, job_id: UUID, title: str, text: str) -> JobRow:
    """Give a job the title and text that someone typed. Raises NotFound, InvalidRequest, and InvalidState if it has
    a draft already."""
    with tools.sessions.begin() as session:
        queries.find(session, job_id, viewer)
        if jobs.enter(session, job_id, title, text, str(viewer)) is not None:
            raise InvalidState(TOO_LATE)
    return steps.present(tools, job_id)


def retry_failed_jobs(
    tools: Tools, queue: Queue, viewer: UUID, error_code: str, request_id: str | None = None
) -> list[UUID]:
    """Leave every visible job that failed with this error to a worker again; return which."""
    begun = leaving.leave_all_failed(tools, viewer, error_code, request_id)
    for job_id in begun:
        queue.announce(Work(STEP, job_id))
    return begun


def edit_story(sessions: Sessions, viewer: UUID, story_id: UUID, revision: int, wording: Wording) -> StoryRow:
    """Save another wording of a story. Raises NotFound, InvalidRequest, InvalidState, Conflict."""
    with sessions.read() as session:
        story = queries.story(session, story_id, viewer)
    grounded = stories.ground(story, wording)
    with sessions.begin() as session:
        return stories.edit(session, story, revision, grounded)


@dataclass(frozen=True)
class ChangedStory:
    story: StoryRow
    #: It was in this state already.
    skipped: bool


def change_story(
    sessions: Sessions,
    viewer: UUID,
    story_id: UUID,
    revision: int,
    verb: str | None,
    wording: Wording | None = None,
) -> ChangedStory:
    """Save a wording if it differs from the story's, and walk an edge if one is named, both or neither.

    Raises as `edit_story` does.
    """
    with sessions.read() as session:
        story = queries.story(session, story_id, viewer)
    grounded = changed = None
    if wording is not None and wording != stories.wording_of(story):
        grounded = stories.ground(story, wording)
    with sessions.begin() as session:
        if grounded is not None:
            revision = stories.edit(session, story, revision, grounded).revision
        if verb is not None:
            changed = stories.change(session, story_id, verb, revision, str(viewer))
        now = changed or queries.story(session, story_id, viewer)
    return ChangedStory(now, skipped=verb is not None and changed is None)


def _require_visible(sessions: Sessions, viewer: UUID, job_id: UUID) -> None:
    with sessions.read() as session:
        queries.find(session, job_id, viewer)
