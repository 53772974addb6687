"""Promises about the history of media, jobs and stories."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, or_, select, tuple_, union_all

from nexus.db.moves import JOB_ROWS, MEDIA_ROWS, SUBJECTS, Subject
from nexus.db.tables import history
from nexus.states import job, media
from nexus.states.machine import Edge
from nexus.upkeep.promises.promise import RESTORE, Promise, offenders

#: The edges that begin an attempt and so increase the fence.
_BEGIN: tuple[tuple[Subject[Any], tuple[Edge[Any], ...]], ...] = (
    (MEDIA_ROWS, (media.START, media.EMBED)),
    (JOB_ROWS, (job.FETCH, job.CLAIM_EXTRACTION, job.GENERATE, job.MANUAL_ENTRY)),
)


def _of(subject: Subject[Any]) -> ColumnElement[bool]:
    return and_(history.c.subject == subject.machine.name, history.c.subject_id == subject.table.c.id)


def _ended_elsewhere(subject: Subject[Any]) -> Select[Any]:
    last = (
        select(history.c.to_status)
        .where(_of(subject))
        .order_by(history.c.id.desc())
        .limit(1)
        .correlate(subject.table)
        .scalar_subquery()
    )
    return select(subject.table.c.id).where(func.coalesce(last, "") != subject.status)


def _miscounted(subject: Subject[Any], edges: tuple[Edge[Any], ...]) -> Select[Any]:
    begun = (
        select(func.count())
        .select_from(history)
        .where(_of(subject), or_(*(history.c.event == edge.verb for edge in edges)))
        .correlate(subject.table)
        .scalar_subquery()
    )
    return select(subject.table.c.id).where(subject.fence != begun)


def _broken_chains() -> Select[Any]:
    """Subjects with a history row that does not start where the previous one ended. The first starts nowhere."""
    before = func.lag(history.c.to_status).over(partition_by=history.c.subject_id, order_by=history.c.id)
    links = select(history.c.subject_id, history.c.from_status, before.label("before"))
    chain = links.subquery("chain")
    return (
        select(chain.c.subject_id.label("id"))
        .where(chain.c.from_status.is_distinct_from(chain.c.before))
        .distinct()
    )


def _strange_steps() -> Select[Any]:
    step = tuple_(history.c.subject, history.c.from_status, history.c.to_status)
    known = [
        step == tuple_(subject.machine.name, source.value, target.value)
        for subject in SUBJECTS
        for source, target in subject.machine.steps()
    ]
    return (
        select(history.c.subject_id.label("id"))
        .where(history.c.from_status.is_not(None), ~or_(*known))
        .distinct()
    )


PROMISES = (
    Promise(
        "history.last",
        "Every history ends with the current status.",
        "A history does not end with the current status, which was changed by something other than Nexus.",
        RESTORE,
        offenders(union_all(*map(_ended_elsewhere, SUBJECTS))),
    ),
    Promise(
        "history.chain",
        "Every step of a history starts where the previous one ended.",
        "A history has a gap.",
        RESTORE,
        offenders(_broken_chains()),
    ),
    Promise(
        "history.steps",
        "Every step of a history is allowed.",
        "A history has a step that is not allowed.",
        RESTORE,
        offenders(_strange_steps()),
    ),
    Promise(
        "history.attempts",
        "Every attempt is in the history.",
        "The number of attempts differs from the history, so a late result could pass for a current one.",
        RESTORE,
        offenders(union_all(*(_miscounted(subject, edges) for subject, edges in _BEGIN))),
    ),
)
