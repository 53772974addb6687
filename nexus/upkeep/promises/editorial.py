"""Promises about jobs and stories."""

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
#: Claims whose quote starts or ends outside the article. A quote that was not found has neither a start nor an end.
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
        "Every job has a known status.",
        "Jobs with a status that Nexus does not know.",
        RESTORE,
        rows(jobs, against(jobs, "status")),
    ),
    Promise(
        "jobs.failures",
        "Failed jobs have a code and a message that names the step; all others have neither.",
        "Failed jobs without a code or a message that names the step, or jobs that have one and did not fail.",
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
        "Only jobs in work have a lease.",
        "Jobs that have a lease but are not in work.",
        RESTORE,
        rows(jobs, against(jobs, "only_held_has_lease")),
    ),
    Promise(
        "jobs.text",
        "Every job that is ready for a draft has a title, a text that is not too long, and the time of extraction.",
        "Jobs ready for a draft, or beyond that, without a title, text or time of extraction, or with too long a text.",
        RESTORE,
        rows(
            jobs,
            one_of(jobs.c.status, job.EXTRACTED_ON),
            or_(not_(HAS_TEXT), func.length(jobs.c.extracted_text) > MOST_TEXT),
        ),
    ),
    Promise(
        "jobs.pages",
        "No page is kept after its text was extracted.",
        "Jobs that still keep a page although its extraction has ended.",
        REPORT,
        rows(
            jobs,
            one_of(jobs.c.status, set(job.JobStatus) - {job.JobStatus.FETCHING, job.JobStatus.EXTRACTING}),
            jobs.c.raw_html.is_not(None),
        ),
    ),
    Promise(
        "jobs.stories",
        "Every saved job has its story.",
        "Jobs whose story is missing or belongs to another job.",
        RESTORE,
        rows(
            jobs,
            or_(jobs.c.status == job.JobStatus.SAVED.value, jobs.c.story_id.is_not(None)),
            not_(_HAS_ITS_STORY),
        ),
    ),
    Promise(
        "stories.values",
        "Every story has a known status.",
        "Stories with a status that Nexus does not know.",
        RESTORE,
        rows(stories, against(stories, "status")),
    ),
    Promise(
        "stories.published",
        "Every story that is or was published has a publication time.",
        "Stories that are or were published, without a publication time.",
        RESTORE,
        rows(
            stories,
            one_of(stories.c.status, {story.StoryStatus.PUBLISHED, story.StoryStatus.ARCHIVED}),
            stories.c.published_at.is_(None),
        ),
    ),
    Promise(
        "stories.evidence",
        "Every quote that was found lies inside its article.",
        "Stories with evidence that points outside their article.",
        RESTORE,
        offenders(
            text(_STRAY_ON_SQLITE).columns(column("id", Uuid)),
            text(_STRAY_ON_POSTGRES).columns(column("id", Uuid)),
        ),
    ),
)
