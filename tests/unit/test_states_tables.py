"""The three tables say what the specification says, spelled out here a second time."""

from typing import Any

import pytest

from nexus.states import attempt, job, media
from nexus.states.machine import Machine

Line = tuple[str, str, str]

#: verb, from, to
MEDIA: list[Line] = [
    ("start", "pending", "extracting"),
    ("readable", "extracting", "ready_for_reading"),
    ("embed", "ready_for_reading", "embedding"),
    ("embedded", "embedding", "ready"),
    ("release", "extracting", "pending"),
    ("release_embedding", "embedding", "ready_for_reading"),
    ("fail", "pending extracting embedding", "failed"),
    ("retry", "failed", "pending"),
    ("retry_embedding", "failed", "ready_for_reading"),
]
JOB: list[Line] = [
    ("fetch", "QUEUED FETCHING", "FETCHING"),
    ("fetched", "FETCHING", "EXTRACTING"),
    ("claim_extraction", "FETCHING EXTRACTING", "EXTRACTING"),
    ("extracted", "EXTRACTING", "READY_TO_GENERATE"),
    ("adopt", "QUEUED", "READY_TO_GENERATE"),
    ("generate", "EXTRACTED READY_TO_GENERATE GENERATING", "GENERATING"),
    ("saved", "GENERATING", "SAVED"),
    ("fail", "QUEUED FETCHING EXTRACTING EXTRACTED READY_TO_GENERATE GENERATING", "FAILED"),
    ("manual_entry", "QUEUED EXTRACTING FAILED", "EXTRACTING"),
    ("regenerate", "SAVED FAILED", "READY_TO_GENERATE"),
    ("retry", "FAILED", "QUEUED"),
]
ATTEMPT: list[Line] = [
    ("start", "IDLE COMPLETE", "RUNNING"),
    ("advance", "RUNNING", "RUNNING"),
    ("stop", "RUNNING", "STOPPING"),
    ("paused", "STOPPING", "PAUSED"),
    ("stopped", "STOPPING", "IDLE"),
    ("resume", "PAUSED", "RUNNING"),
    ("discard", "PAUSED", "IDLE"),
    ("complete", "RUNNING", "COMPLETE"),
    ("close", "RUNNING STOPPING PAUSED", "STOPPING"),
]
TABLES = [(media.MEDIA, MEDIA), (job.JOB, JOB), (attempt.ATTEMPT, ATTEMPT)]
NAMES = [machine.name for machine, _ in TABLES]


@pytest.mark.parametrize(("machine", "lines"), TABLES, ids=NAMES)
def test_the_edges_are_those_of_the_specification(machine: Machine[Any], lines: list[Line]) -> None:
    found = {edge.verb: ({state.value for state in edge.sources}, edge.target.value) for edge in machine}
    assert found == {verb: (set(sources.split()), target) for verb, sources, target in lines}


@pytest.mark.parametrize(("machine", "lines"), TABLES, ids=NAMES)
def test_no_other_step_from_state_to_state_exists(machine: Machine[Any], lines: list[Line]) -> None:
    expected = {(source, target) for _, sources, target in lines for source in sources.split()}
    assert {(source.value, target.value) for source, target in machine.steps()} == expected


def test_machines_start_where_the_specification_says() -> None:
    assert media.MEDIA.initial is media.MediaStatus.PENDING
    assert job.JOB.initial is job.JobStatus.QUEUED
    assert attempt.ATTEMPT.initial is attempt.AttemptStatus.IDLE


def test_the_states_are_those_of_the_specification() -> None:
    assert [state.value for state in media.MediaStatus] == [
        "pending",
        "extracting",
        "ready_for_reading",
        "embedding",
        "ready",
        "failed",
    ]
    jobs = "QUEUED FETCHING EXTRACTING EXTRACTED READY_TO_GENERATE GENERATING SAVED FAILED"
    assert " ".join(job.JobStatus) == jobs
    assert " ".join(attempt.AttemptStatus) == "IDLE RUNNING STOPPING PAUSED COMPLETE"
    assert [phase.value for phase in attempt.Phase] == [
        "not_started",
        "preflight",
        "parsing",
        "splitting",
        "atomic_text_commit",
        "text_committed",
    ]


def test_asking_again_for_what_is_done_or_under_way_is_harmless() -> None:
    """Duplicate deliveries are skipped, not refused."""
    skips = {edge.verb: {state.value for state in edge.skips} for edge in media.MEDIA}
    assert skips["start"] == {"extracting", "ready_for_reading", "embedding", "ready"}
    assert skips["readable"] == {"ready_for_reading", "embedding", "ready"}
    assert skips["fail"] == {"failed", "ready_for_reading", "ready"}
    assert skips["retry"] == skips["retry_embedding"] == set()


def test_no_edge_leads_from_a_success_to_a_failure() -> None:
    steps = {(source.value, target.value) for source, target in media.MEDIA.steps()}
    assert ("ready", "failed") not in steps
    assert ("ready_for_reading", "failed") not in steps
    assert not {target for source, target in steps if source == "ready"}
    assert ("SAVED", "FAILED") not in {(s.value, t.value) for s, t in job.JOB.steps()}


def test_the_values_of_the_enums_stay_as_specified() -> None:
    assert [kind.value for kind in media.Kind] == [
        "web_article",
        "video",
        "podcast_episode",
        "pdf",
        "epub",
        "text",
    ]
    assert [stage.value for stage in media.Stage] == ["upload", "extract", "transcribe", "embed", "other"]
    assert {kind.value for kind in media.URL_KINDS} == {"web_article", "video"}
    assert {kind.value for kind in media.FILE_KINDS} == {"pdf", "epub", "text"}
    assert {state.value for state in media.HELD} == {"extracting", "embedding"}
