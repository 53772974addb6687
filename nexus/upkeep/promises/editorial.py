"""What must hold of jobs and stories."""

from __future__ import annotations

from sqlalchemy import Uuid, and_, column, exists, func, not_, or_, select, text

from nexus.db.editorial import jobs, stories
from nexus.db.tables import one_of
from nexus.editorial.jobs import HAS_TEXT, MOST_TEXT, STEPS
from nexus.states import job, story
from nexus.upkeep.promises.promise import REPORT, RESTORE, Promise, against, offenders, rows

_NAMES_ITS_STEP = or_(
    *(jobs.c.error_message.startswith(f"[{step}] ", autoescape=True) for step in STEPS.values())
)
_HAS_ITS_STORY = exists(
    select(stories.c.id).where(stories.c.id == jobs.c.story_id, stories.c.job_id == jobs.c.id).correlate(jobs)
)
#: Claims whose quote begins or ends outside of the article; one that was not found does neither.
_STRAY = """
    SELECT DISTINCT stories.id FROM stories, {each_part} AS part, {each_claim} AS claim
    WHERE CASE WHEN {start} IS NULL OR {end} IS NULL THEN {start} IS NOT NULL OR {end} IS NOT NULL
    ELSE NOT (0 <= {start} AND {start} < {end} AND {end} <= length(stories.article_text)) END
"""
_STRAY_ON_SQLITE = _STRAY.format(
    each_part="json_each(stories.sections)",
    each_claim="json_each(part.value)",
    start="json_extract(claim.value, '$.start')",
    end="json_extract(claim.value, '$.end')",
)
_STRAY_ON_POSTGRES = _STRAY.format(
    each_part="json_each(CAST(stories.sections AS json))",
    each_claim="json_array_elements(part.value)",
    start="CAST(claim.value ->> 'start' AS integer)",
    end="CAST(claim.value ->> 'end' AS integer)",
)

PROMISES = (
    Promise(
        "jobs.values",
        "Every status of a job is a known one.",
        "Jobs with a status that Nexus does not know.",
        RESTORE,
        rows(jobs, against(jobs, "status")),
    ),
    Promise(
        "jobs.failures",
        "What has failed has a code and a message that names its step; what has not has none.",
        "Jobs that failed without a code or a message that names their step, or have one without having failed.",
        RESTORE,
        rows(
            jobs,
            or_(
                against(jobs, "failed_has_code", "failed_has_message"),
                and_(jobs.c.error_message.is_not(None), not_(_NAMES_ITS_STEP)),
            ),
        ),
    ),
    Promise(
        "jobs.leases",
        "Only a job that is in work has a lease.",
        "Jobs that have a lease and are not in work.",
        RESTORE,
        rows(jobs, against(jobs, "only_held_has_lease")),
    ),
    Promise(
        "jobs.text",
        "What a draft can be made of has a title, a text that is not too long, and the time of both.",
        "Jobs that are ready for a draft, or further, without a title, a text or its time, or with too long a text.",
        RESTORE,
        rows(
            jobs,
            one_of(jobs.c.status, job.EXTRACTED_ON),
            or_(not_(HAS_TEXT), func.length(jobs.c.extracted_text) > MOST_TEXT),
        ),
    ),
    Promise(
        "jobs.pages",
        "No page is kept longer than until its text is taken out.",
        "Jobs that still have the page whose text was taken out, or could not be.",
        REPORT,
        rows(
            jobs,
            one_of(jobs.c.status, set(job.Status) - {job.Status.FETCHING, job.Status.EXTRACTING}),
            jobs.c.raw_html.is_not(None),
        ),
    ),
    Promise(
        "jobs.stories",
        "What is saved has its story.",
        "Jobs whose story is missing, or another job's.",
        RESTORE,
        rows(
            jobs,
            or_(jobs.c.status == job.Status.SAVED.value, jobs.c.story_id.is_not(None)),
            not_(_HAS_ITS_STORY),
        ),
    ),
    Promise(
        "stories.values",
        "Every status of a story is a known one.",
        "Stories with a status that Nexus does not know.",
        RESTORE,
        rows(stories, against(stories, "status")),
    ),
    Promise(
        "stories.published",
        "What is or was published says since when.",
        "Stories that are or were published, and have no time of it.",
        RESTORE,
        rows(
            stories,
            one_of(stories.c.status, {story.Status.PUBLISHED, story.Status.ARCHIVED}),
            stories.c.published_at.is_(None),
        ),
    ),
    Promise(
        "stories.evidence",
        "Every quote that was found stands inside its article.",
        "Stories with evidence that points outside of their article.",
        RESTORE,
        offenders(
            text(_STRAY_ON_SQLITE).columns(column("id", Uuid)),
            text(_STRAY_ON_POSTGRES).columns(column("id", Uuid)),
        ),
    ),
)
