"""What an announced id is about, and the room that works on it."""

from __future__ import annotations

from uuid import UUID

from nexus import logging
from nexus.editorial import editing
from nexus.media import runner
from nexus.media.runner import Outcome
from nexus.media.workbench import Tools


def run(tools: Tools, subject_id: UUID, request_id: str | None = None) -> Outcome:
    """Work on whatever is due of a media, of its refresh or of a job; nothing happens if nothing is."""
    outcome = runner.run(tools, subject_id, request_id)
    if outcome is not None:
        return outcome
    with logging.task_log_context(request_id=request_id, job_id=subject_id):
        return Outcome.READABLE if editing.run(tools, subject_id, request_id) else Outcome.NOTHING
