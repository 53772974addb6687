"""The tables of jobs and stories."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    Uuid,
    false,
)

from nexus.db.tables import Moment, metadata, quoted
from nexus.states import job, story

_JOB_FAILED = "(status = 'FAILED')"
#: Steps that were asked for and that nobody has begun.
UNBEGUN = f"status IN ({quoted(job.HELD)}) AND lease_expires_at IS NULL"
#: Jobs that an editor has not removed.
SHOWN = "removed_at IS NULL"

jobs = Table(
    "jobs",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("created_by_user_id", ForeignKey("users.id"), nullable=False),
    Column("library_id", ForeignKey("libraries.id", ondelete="SET NULL")),
    #: The article, shared with everybody who has the same address in a library.
    Column("media_id", ForeignKey("media.id", ondelete="SET NULL")),
    Column("url", Text),
    Column("canonical_url", Text),
    Column("status", String(32), nullable=False, server_default=job.JobStatus.QUEUED.value),
    Column("status_before", String(32)),
    #: The fence, like processing_attempts of a media.
    Column("attempt", Integer, nullable=False, server_default="0"),
    #: How often this step was begun.
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("lease_expires_at", Moment),
    #: When a step that is left to a worker is due.
    Column("run_after", Moment),
    #: When the next draft may be asked for.
    Column("generate_after", Moment),
    #: Who asked for the draft, and pays for its tokens.
    Column("drafted_for_user_id", ForeignKey("users.id")),
    #: The fetched page, until its text is extracted.
    Column("raw_html", LargeBinary),
    Column("charset", Text),
    Column("http_status", Integer),
    Column("content_type", Text),
    Column("fetched_url", Text),
    Column("extracted_title", Text),
    Column("extracted_text", Text),
    Column("manually_provided", Boolean, nullable=False, server_default=false()),
    Column("error_code", String(64)),
    Column("error_message", Text),
    #: The latest story. Earlier ones refer to the job by their job_id.
    Column("story_id", Uuid),
    Column("fetched_at", Moment),
    Column("extracted_at", Moment),
    Column("generated_at", Moment),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    #: The request that left a step to a worker, for log lines.
    Column("request_id", String(128)),
    #: The revision of the item that its text was taken from; None if it was fetched or entered for the job.
    Column("media_revision", Integer),
    #: When an editor removed it. The row stays while it has stories, which are seen by those who may see their job.
    Column("removed_at", Moment),
    CheckConstraint(f"status IN ({quoted(job.JobStatus)})", name="status"),
    CheckConstraint(f"{_JOB_FAILED} = (error_code IS NOT NULL)", name="failed_has_code"),
    CheckConstraint(f"{_JOB_FAILED} = (error_message IS NOT NULL)", name="failed_has_message"),
    CheckConstraint(
        f"lease_expires_at IS NULL OR status IN ({quoted(job.HELD)})", name="only_held_has_lease"
    ),
    CheckConstraint("status <> 'SAVED' OR story_id IS NOT NULL", name="saved_has_story"),
)

stories = Table(
    "stories",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("job_id", ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    Column("slug", String(120), nullable=False, unique=True),
    Column("status", String(16), nullable=False, server_default=story.StoryStatus.DRAFT.value),
    Column("status_before", String(16)),
    #: The fence: every change increases it, so that two editors can't overwrite each other by mistake.
    Column("revision", Integer, nullable=False, server_default="1"),
    Column("headline", Text, nullable=False),
    Column("summary", Text, nullable=False),
    #: JSON: what_happened and background, each a list of claims with their evidence.
    Column("sections", Text, nullable=False),
    #: JSON: a list of title and url.
    Column("sources", Text, nullable=False),
    #: The text that the evidence refers to; the job's own text may change later.
    Column("article_text", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("prompt_version", String(32), nullable=False),
    Column("tokens_used", BigInteger, nullable=False),
    Column("generated_at", Moment, nullable=False),
    #: When somebody last edited it.
    Column("edited_at", Moment),
    Column("published_at", Moment),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    #: When it was last corrected after its publication, and what readers are told about that.
    Column("corrected_at", Moment),
    Column("correction", Text),
    CheckConstraint(f"status IN ({quoted(story.StoryStatus)})", name="status"),
)
