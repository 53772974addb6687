"""Editorial jobs over HTTP: fetched once and read once, however many callers ask."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from nexus import logging
from nexus.app import App
from nexus.editorial import jobs, requests, step_claims, steps
from nexus.editorial.steps import Stepping
from nexus.errors import EmptyContent, FetchBusy, WorkError
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.libraries.quota import Operation
from nexus.queue import Work
from nexus.states.job import JobStatus
from nexus.states.media import Kind
from nexus.work.turns import Turns
from tests.kit.articles import ARTICLE, SENTENCES
from tests.kit.clock import SetClock
from tests.kit.documents import pdf
from tests.kit.http import Caller, Site, job_problem, serve
from tests.kit.job_calls import TEXT, begin_job, call_step, job_event_names, job_of, ready_job
from tests.kit.jobs import LEASE, PAGE, claim_extraction, force_job_into, start_fetch
from tests.kit.media import row_of
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.sign_ins import cookie_of
from tests.kit.work import sweep, take_next_step, take_step

LATE = [JobStatus.EXTRACTED, JobStatus.READY_TO_GENERATE, JobStatus.GENERATING, JobStatus.SAVED]


def test_a_job_waits_until_it_is_fetched(me: Caller, pages: Pages) -> None:
    job = job_of(me.post("/api/ingestion-jobs", json={"url": pages.url("/boats#top")}))
    assert (job["status"], job["canonicalUrl"]) == ("QUEUED", pages.url("/boats"))
    assert (job["manuallyProvided"], job["storyId"], job["rawHtml"]) == (False, None, None)
    assert pages.asked == []


def test_a_fetched_job_keeps_its_page_and_is_extracted_by_a_worker(
    app: App, me: Caller, pages: Pages
) -> None:
    job_id = begin_job(me, pages)
    job = job_of(call_step(me, job_id, "fetch"))
    assert (job["status"], job["httpStatus"], job["contentType"]) == (
        "EXTRACTING",
        200,
        "text/html; charset=utf-8",
    )
    assert job["rawHtml"] == ARTICLE
    assert job["fetchedAt"]
    assert take_next_step(app.tools)
    job = job_of(me.get(f"/api/ingestion-jobs/{job_id}"))
    assert (job["status"], job["extractedTitle"], job["rawHtml"]) == (
        "READY_TO_GENERATE",
        "The harbour",
        None,
    )
    assert SENTENCES[0] in job["extractedText"]
    assert job_event_names(me, job_id) == ["create", "fetch", "fetched", "claim_extraction", "extracted"]


def test_extracting_a_job_twice_reads_the_page_once(me: Caller, pages: Pages) -> None:
    job_id = begin_job(me, pages)
    call_step(me, job_id, "fetch")
    first, second = call_step(me, job_id, "extract").json(), call_step(me, job_id, "extract").json()
    assert (first["skipped"], second["skipped"]) == (False, True)
    assert first["job"] == second["job"]
    assert job_event_names(me, job_id).count("extracted") == 1


@pytest.mark.usefixtures("logging_as_before")
@pytest.mark.parametrize("json", [True, False], ids=["json", "console"])
class TestWhatMonitoringSearchesFor:
    """What a skipped extraction logs."""

    @pytest.mark.parametrize(
        ("status", "words"),
        [
            (JobStatus.READY_TO_GENERATE, "already extracted (status=READY_TO_GENERATE)"),
            (JobStatus.GENERATING, "in terminal state (status=GENERATING)"),
            (JobStatus.SAVED, "in terminal state (status=SAVED)"),
        ],
    )
    def test_a_skipped_extraction_logs_why(
        self,
        app: App,
        me: Caller,
        pages: Pages,
        capsys: pytest.CaptureFixture[str],
        json: bool,
        status: JobStatus,
        words: str,
    ) -> None:
        job_id = ready_job(me, pages)
        force_job_into(app.sessions, UUID(job_id), status)
        logging.configure(json=json, level="info")
        call_step(me, job_id, "extract")
        assert f"[EXTRACT] Job {job_id} {words}, skipping" in capsys.readouterr().err

    def test_an_extraction_that_another_worker_finished_logs_so(
        self,
        app: App,
        me: Caller,
        pages: Pages,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        json: bool,
    ) -> None:
        job_id = begin_job(me, pages)
        call_step(me, job_id, "fetch")
        finish = another_worker(app, job_id)
        monkeypatch.setattr(requests, "_wait_for_reader", lambda *_: finish())
        logging.configure(json=json, level="info")
        assert call_step(me, job_id, "extract").json()["skipped"] is True
        said = f"[EXTRACT] Job {job_id} already extracted by another worker, skipping"
        assert said in capsys.readouterr().err

    def test_a_worker_that_finished_an_extraction_itself_blames_no_other(
        self, app: App, me: Caller, pages: Pages, capsys: pytest.CaptureFixture[str], json: bool
    ) -> None:
        job_id = begin_job(me, pages)
        call_step(me, job_id, "fetch")
        logging.configure(json=json, level="info")
        assert app.kernel.run(Work("step", UUID(job_id))) is not None
        assert "by another worker" not in capsys.readouterr().err


def another_worker(app: App, job_id: str, error: WorkError | None = None) -> Callable[[], None]:
    """Claim the extraction; calling the result ends it with a text or an error."""
    with app.sessions.begin() as session:
        claim = claim_extraction(session, UUID(job_id), LEASE, "test")
    assert claim

    def finish() -> None:
        with app.sessions.begin() as session:
            if error is None:
                found = Extraction.plain("Boats", TEXT)
                assert jobs.mark_extracted(session, claim.id, claim.attempt, found, None, "test")
            else:
                assert jobs.fail_step(session, claim.id, JobStatus.EXTRACTING, claim.attempt, error, "test")

    return finish


def test_a_failed_extraction_answers_the_same_whoever_won_the_race(
    app: App, me: Caller, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = begin_job(me, pages)
    call_step(me, job_id, "fetch")
    finish = another_worker(app, job_id, EmptyContent())
    monkeypatch.setattr(requests, "_wait_for_reader", lambda *_: finish())
    waited, later = call_step(me, job_id, "extract"), call_step(me, job_id, "extract")
    AVAILABLE_EXTRACTORS.clear()
    without_a_reader = call_step(me, job_id, "extract")
    body = waited.json()
    assert (body["success"], body["skipped"], body["error"]) == (False, False, "E_EMPTY_CONTENT")
    assert body["message"].startswith("[EXTRACT] ")
    assert body["job"]["status"] == "FAILED"
    for answer in (later, without_a_reader):
        assert (answer.status_code, answer.json()) == (200, body)


def test_a_failed_fetch_has_nothing_to_extract(me: Caller, pages: Pages) -> None:
    job_id = begin_job(me, pages, "/missing")
    call_step(me, job_id, "fetch")
    assert job_problem(call_step(me, job_id, "extract")) == (409, "NOT_READY")


def test_a_failed_draft_does_not_make_its_text_unextracted(app: App, me: Caller, pages: Pages) -> None:
    job_id = ready_job(me, pages)
    force_job_into(app.sessions, UUID(job_id), JobStatus.FAILED)
    answer = call_step(me, job_id, "extract").json()
    assert (answer["success"], answer["skipped"]) == (True, True)
    assert answer["job"]["extractedTitle"] == "The harbour"


@pytest.mark.parametrize(
    ("page", "code"),
    [
        (Answer(b"Gone.", "text/html; charset=iso-8859-1", 404), "E_FETCH_HTTP_4XX"),
        (Answer(b"Later.", "text/plain; charset=utf-8; format=flowed", 503), "E_FETCH_HTTP_5XX"),
        (Answer(b"\x89PNG", "image/png; name=boat.png", 200), "E_FETCH_WRONG_TYPE"),
    ],
    ids=["404", "503", "image"],
)
def test_a_failed_fetch_keeps_the_status_and_the_whole_content_type(
    me: Caller, pages: Pages, page: Answer, code: str
) -> None:
    pages["/boats"] = page
    job_id = begin_job(me, pages)
    job = job_of(call_step(me, job_id, "fetch"))
    assert (job["status"], job["errorCode"], job["fetchedAt"]) == ("FAILED", code, None)
    assert (job["httpStatus"], job["contentType"]) == (page.status, page.content_type)
    pages["/boats"] = Answer(ARTICLE.encode())
    job = job_of(call_step(me, job_id, "retry"))
    assert (job["httpStatus"], job["contentType"]) == (200, "text/html; charset=utf-8")


def test_a_page_that_never_answered_has_neither_status_nor_content_type(me: Caller) -> None:
    made = me.post("/api/ingestion-jobs", json={"url": "https://127.0.0.1:1/"})
    job = job_of(call_step(me, job_of(made)["id"], "fetch"))
    assert (job["status"], job["httpStatus"], job["contentType"]) == ("FAILED", None, None)


def test_a_pdf_that_its_site_calls_something_else_is_read_as_a_pdf(me: Caller, pages: Pages) -> None:
    pages["/boats"] = Answer(pdf("\n".join(SENTENCES)), "application/octet-stream")
    job_id = begin_job(me, pages)
    assert job_of(call_step(me, job_id, "fetch"))["contentType"] == "application/octet-stream"
    assert job_of(call_step(me, job_id, "extract"))["status"] == "READY_TO_GENERATE"


@pytest.mark.parametrize("status", LATE)
def test_extracting_an_extracted_job_changes_nothing(
    app: App, me: Caller, pages: Pages, status: JobStatus
) -> None:
    job_id = ready_job(me, pages)
    force_job_into(app.sessions, UUID(job_id), status)
    before = me.get(f"/api/ingestion-jobs/{job_id}").json()
    answer = call_step(me, job_id, "extract").json()
    assert (answer["success"], answer["skipped"]) == (True, True)
    assert me.get(f"/api/ingestion-jobs/{job_id}").json() == before


def test_a_job_is_not_extracted_before_it_is_fetched(me: Caller, pages: Pages) -> None:
    job_id = begin_job(me, pages)
    assert job_problem(call_step(me, job_id, "extract")) == (409, "NOT_READY")
    assert job_event_names(me, job_id) == ["create"]


def test_a_running_fetch_is_not_stolen(app: App, me: Caller, pages: Pages) -> None:
    job_id = begin_job(me, pages)
    with app.sessions.begin() as session:
        start_fetch(session, UUID(job_id), LEASE, "test")
    assert job_problem(call_step(me, job_id, "extract")) == (409, "NOT_READY")
    assert job_problem(call_step(me, job_id, "fetch")) == (409, "E_INVALID_STATE")


def test_simultaneous_extractions_share_one_result(app: App, site: Site, pages: Pages) -> None:
    user = uuid4()
    job_id = begin_job(site.caller(user), pages)
    call_step(site.caller(user), job_id, "fetch")
    callers = [site.caller(user) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda one: call_step(one, job_id, "extract"), callers))
    assert {answer.status_code for answer in answers} == {200}
    assert sum(not answer.json()["skipped"] for answer in answers) == 1
    assert job_event_names(callers[0], job_id).count("claim_extraction") == 1


def test_a_job_with_a_missing_page_fails_with_its_step_and_what_to_do(me: Caller, pages: Pages) -> None:
    job = job_of(call_step(me, begin_job(me, pages, "/missing"), "fetch"))
    assert (job["status"], job["errorCode"]) == ("FAILED", "E_FETCH_HTTP_4XX")
    assert job["errorMessage"].startswith("[FETCH] ")


def test_a_job_with_a_page_without_an_article_fails_at_extraction(me: Caller, pages: Pages) -> None:
    pages["/empty"] = Answer(b"<html><title>Nothing</title><body><p>Hardly a word.</p></body></html>")
    job_id = begin_job(me, pages, "/empty")
    call_step(me, job_id, "fetch")
    job = job_of(call_step(me, job_id, "extract"))
    assert (job["status"], job["errorCode"]) == ("FAILED", "E_EMPTY_CONTENT")
    assert job["errorMessage"].startswith("[EXTRACT] ")
    assert job["rawHtml"] is None


def test_retrying_a_job_fetches_again_and_clears_the_failure(me: Caller, pages: Pages) -> None:
    job_id = begin_job(me, pages, "/later")
    call_step(me, job_id, "fetch")
    pages["/later"] = Answer(ARTICLE.encode())
    job = job_of(call_step(me, job_id, "retry"))
    assert (job["status"], job["errorCode"], job["errorMessage"]) == ("EXTRACTING", None, None)
    assert job_of(call_step(me, job_id, "extract"))["status"] == "READY_TO_GENERATE"
    assert job_problem(call_step(me, job_id, "retry")) == (409, "E_INVALID_STATE")


def test_a_job_entered_by_hand_is_ready_at_once(me: Caller) -> None:
    job = job_of(me.post("/api/ingestion-jobs", json={"title": "Boats", "text": TEXT}))
    assert (job["status"], job["manuallyProvided"], job["url"]) == ("READY_TO_GENERATE", True, None)
    assert (job["extractedTitle"], job["extractedText"]) == ("Boats", TEXT)
    assert job_event_names(me, job["id"]) == ["create", "manual_entry", "extracted"]


def test_a_page_that_can_not_be_had_is_entered_by_hand(me: Caller, pages: Pages) -> None:
    job_id = begin_job(me, pages, "/paywall")
    call_step(me, job_id, "fetch")
    job = job_of(call_step(me, job_id, "manual-entry", title="Boats", text=TEXT))
    assert (job["status"], job["manuallyProvided"]) == ("READY_TO_GENERATE", True)
    assert (job["errorCode"], job["errorMessage"]) == (None, None)
    assert job["mediaId"] is None


def test_manual_entry_does_not_wait_for_a_slow_fetch(app: App, me: Caller, pages: Pages) -> None:
    job_id = begin_job(me, pages)
    with app.sessions.begin() as session:
        claim = start_fetch(session, UUID(job_id), LEASE, "test")
    job = job_of(call_step(me, job_id, "manual-entry", title="Mine", text=TEXT))
    assert (job["status"], job["manuallyProvided"], job["extractedTitle"]) == (
        "READY_TO_GENERATE",
        True,
        "Mine",
    )
    assert job_event_names(me, job_id) == ["create", "fetch", "fail", "manual_entry", "extracted"]
    assert claim
    with app.sessions.begin() as session:
        assert not jobs.mark_fetched(session, UUID(job_id), claim.attempt, PAGE, "test")
        error = EmptyContent()
        assert not jobs.fail_step(session, UUID(job_id), JobStatus.FETCHING, claim.attempt, error, "test")
    assert job_of(me.get(f"/api/ingestion-jobs/{job_id}")) == job


def test_manual_entry_wins_over_a_running_extraction(app: App, me: Caller, pages: Pages) -> None:
    job_id = begin_job(me, pages)
    call_step(me, job_id, "fetch")
    with app.sessions.begin() as session:
        claim = claim_extraction(session, UUID(job_id), LEASE, "test")
    call_step(me, job_id, "manual-entry", title="Mine", text=TEXT)
    assert claim
    with app.sessions.begin() as session:
        assert not jobs.fail_step(
            session, UUID(job_id), JobStatus.EXTRACTING, claim.attempt, EmptyContent(), "test"
        )
    assert job_of(me.get(f"/api/ingestion-jobs/{job_id}"))["extractedTitle"] == "Mine"


@pytest.mark.parametrize(
    ("title", "text"), [("", TEXT), ("Boats", "short"), ("Boats", "x" * 50_001), ("x" * 501, TEXT)]
)
def test_an_invalid_manual_entry_is_refused_and_changes_nothing(
    me: Caller, pages: Pages, title: str, text: str
) -> None:
    job_id = begin_job(me, pages)
    assert job_problem(call_step(me, job_id, "manual-entry", title=title, text=text)) == (
        400,
        "E_INVALID_REQUEST",
    )
    assert job_event_names(me, job_id) == ["create"]
    made = me.post("/api/ingestion-jobs", json={"title": title, "text": text})
    assert job_problem(made) == (400, "E_INVALID_REQUEST")
    assert len(me.get("/api/ingestion-jobs").json()["jobs"]) == 1


def test_manual_entry_does_not_overwrite_a_job_that_is_ready(me: Caller, pages: Pages) -> None:
    job_id = ready_job(me, pages)
    answer = call_step(me, job_id, "manual-entry", title="Boats", text=TEXT)
    assert job_problem(answer) == (409, "E_INVALID_STATE")


def test_a_slow_fetch_offers_manual_entry_after_thirty_seconds_without_scripts(
    app: App, me: Caller, pages: Pages, clock: SetClock
) -> None:
    """It stops reloading, which would discard what is being typed."""
    job_id = begin_job(me, pages)
    clock.forward(minutes=5)
    steps.leave_fetch(app.tools, UUID(job_id), "test")

    def shown() -> tuple[bool, bool]:
        html = the_page(app, me, job_id)
        return 'http-equiv="refresh"' in html, bool(re.search('<p class="overdue"[^>]*(?<! hidden)>', html))

    assert shown() == (True, False)
    clock.forward(seconds=29)
    assert shown() == (True, False)
    clock.forward(seconds=1)
    assert shown() == (False, True)
    call_step(me, job_id, "manual-entry", title="Mine", text=TEXT)
    assert shown() == (False, False)


def the_page(app: App, me: Caller, job_id: str) -> str:
    cookie = cookie_of(app.sessions, me.user)
    return me.get(f"/admin/jobs/{job_id}", headers={"Authorization": "", "Cookie": cookie}).text


class TestTheArticle:
    """What a job reads is also a media in its creator's library."""

    def test_a_jobs_article_becomes_readable_without_a_second_fetch(
        self, app: App, me: Caller, pages: Pages
    ) -> None:
        job = job_of(me.get(f"/api/ingestion-jobs/{ready_job(me, pages)}"))
        media = me.get(f"/media/{job['mediaId']}").json()["data"]
        assert (media["processing_status"], media["canonical_url"]) == (
            "ready_for_reading",
            pages.url("/boats"),
        )
        assert len(pages.asked) == 1

    def test_a_jobs_article_that_is_readable_already_stays_unchanged(
        self, app: App, me: Caller, pages: Pages
    ) -> None:
        first = job_of(me.get(f"/api/ingestion-jobs/{ready_job(me, pages)}"))
        pages["/boats"] = Answer(ARTICLE.replace("harbour", "lighthouse").encode())
        second = job_of(me.get(f"/api/ingestion-jobs/{ready_job(me, pages)}"))
        assert second["mediaId"] == first["mediaId"]
        assert "lighthouse" in second["extractedText"]
        assert row_of(app.sessions, UUID(first["mediaId"])).title == "The harbour"

    def test_an_article_entered_by_hand_does_not_become_an_item(self, me: Caller) -> None:
        me.post("/api/ingestion-jobs", json={"title": "Boats", "text": TEXT})
        assert me.get("/media").json()["data"]["items"] == []


def test_a_fetch_whose_worker_is_lost_is_taken_up_again(
    app: App, me: Caller, pages: Pages, clock: SetClock
) -> None:
    job_id = begin_job(me, pages)
    with app.sessions.begin() as session:
        lost = start_fetch(session, UUID(job_id), LEASE, "test")
    assert not take_next_step(app.tools)
    clock.forward(seconds=LEASE.total_seconds() + 1)
    sweep(app.tools, app.queue)
    clock.forward(seconds=app.settings.backoff_seconds)
    assert take_next_step(app.tools)
    assert job_of(me.get(f"/api/ingestion-jobs/{job_id}"))["status"] == "READY_TO_GENERATE"
    assert lost
    with app.sessions.begin() as session:
        error = EmptyContent()
        assert not jobs.fail_step(session, UUID(job_id), JobStatus.FETCHING, lost.attempt, error, "test")


def test_an_extraction_that_loses_three_workers_fails(
    app: App, me: Caller, pages: Pages, clock: SetClock
) -> None:
    job_id = begin_job(me, pages)
    call_step(me, job_id, "fetch")
    for _ in range(3):
        with app.sessions.begin() as session:
            assert claim_extraction(session, UUID(job_id), LEASE, "test")
        clock.forward(seconds=LEASE.total_seconds() + 1)
        sweep(app.tools, app.queue)
    job = job_of(me.get(f"/api/ingestion-jobs/{job_id}"))
    assert (job["status"], job["errorCode"]) == ("FAILED", "E_JOB_TIMEOUT")
    assert job["errorMessage"].startswith("[EXTRACT] ")


def test_a_job_is_visible_only_to_its_creator(site: Site, me: Caller, pages: Pages) -> None:
    job_id = begin_job(me, pages)
    other = site.caller()
    assert job_problem(other.get(f"/api/ingestion-jobs/{job_id}")) == (404, "E_NOT_FOUND")
    for step in ("fetch", "extract", "retry"):
        assert job_problem(call_step(other, job_id, step)) == (404, "E_NOT_FOUND")
    assert other.get("/api/ingestion-jobs").json()["jobs"] == []


def test_admins_of_a_jobs_library_see_it_and_members_do_not(site: Site, me: Caller, pages: Pages) -> None:
    library = me.post("/libraries", json={"name": "Desk"}).json()["data"]["id"]
    admin, member = site.caller(), site.caller()
    for who, role in ((admin, "admin"), (member, "member")):
        who.get("/libraries")
        me.let_in(library, who.user, role)
    body = {"url": pages.url("/boats"), "libraryId": library}
    job = job_of(me.post("/api/ingestion-jobs", json=body))
    assert job_of(admin.get(f"/api/ingestion-jobs/{job['id']}"))["id"] == job["id"]
    assert job_problem(member.get(f"/api/ingestion-jobs/{job['id']}")) == (404, "E_NOT_FOUND")
    assert job_problem(member.post("/api/ingestion-jobs", json=body)) == (403, "E_FORBIDDEN")


def test_the_next_page_of_jobs_starts_after_the_previous_one(
    me: Caller, pages: Pages, clock: SetClock
) -> None:
    made = []
    for _ in range(5):
        made.append(begin_job(me, pages))
        clock.forward(seconds=1)
    call_step(me, made[0], "fetch")
    seen, cursor = [], None
    while True:
        more = {"cursor": cursor} if cursor else {}
        page = me.get("/api/ingestion-jobs", params={"limit": "2", **more}).json()
        seen += [job["id"] for job in page["jobs"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert seen == made[::-1]
    waiting = me.get("/api/ingestion-jobs", params={"status": "EXTRACTING"}).json()["jobs"]
    assert [job["id"] for job in waiting] == [made[0]]
    assert job_problem(me.get("/api/ingestion-jobs", params={"status": "nonsense"})) == (
        400,
        "E_INVALID_REQUEST",
    )
    assert job_problem(me.get("/api/ingestion-jobs", params={"cursor": "nonsense"})) == (
        400,
        "E_INVALID_REQUEST",
    )


@pytest.mark.parametrize(
    "body", [{}, {"url": ""}, {"url": "nonsense"}, {"url": "https://u:p@example.com/"}, {"text": TEXT}, []]
)
def test_a_job_needs_an_address_or_a_title_with_text(me: Caller, body: object) -> None:
    status, error = job_problem(me.post("/api/ingestion-jobs", json=body))
    assert (status, error) in {(400, "E_INVALID_REQUEST"), (400, "E_INVALID_URL")}
    assert me.get("/api/ingestion-jobs").json()["jobs"] == []


def test_addresses_of_jobs_count_towards_the_days_allowance(app: App, pages: Pages) -> None:
    limited = replace(app, tools=replace(app.tools, limits={Operation.INGEST_URLS: 1}))
    with serve(limited) as site:
        me = site.caller()
        begin_job(me, pages)
        again = me.post("/api/ingestion-jobs", json={"url": pages.url("/boats")})
        assert job_problem(again) == (429, "E_RATE_LIMITED")


def test_a_job_on_a_busy_site_is_fetched_later_and_loses_no_try(
    app: App, me: Caller, pages: Pages, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = begin_job(me, pages)
    with monkeypatch.context() as busy:
        busy.setattr(app.tools.fetcher, "get", refuse_as_busy)
        assert job_of(call_step(me, job_id, "fetch"))["status"] == "FETCHING"
    assert not take_next_step(app.tools)
    clock.forward(seconds=app.settings.backoff_seconds)
    assert take_next_step(app.tools)
    with app.sessions.read() as session:
        job = jobs.find_job(session, UUID(job_id))
    assert (job.status, job.tries) == ("READY_TO_GENERATE", 0)


def test_workers_take_jobs_of_all_users_in_turn(app: App, site: Site, pages: Pages, clock: SetClock) -> None:
    many, one = site.caller(), site.caller()
    asked = [begin_job(many, pages) for _ in range(3)] + [begin_job(one, pages)]
    for job_id in asked:
        steps.leave_fetch(app.tools, UUID(job_id), "test")
        clock.forward(seconds=1)
    turns = Turns(app.sessions, LEASE)
    taken = [str(turns.claim(Stepping(app.tools), 1)[0].subject.job.id) for _ in asked]
    assert asked[3] in taken[:2]
    assert [job_id for job_id in taken if job_id != asked[3]] == asked[:3]


@pytest.mark.parametrize("where", ["in a request", "in a worker"])
def test_the_lease_of_a_step_is_renewed_while_it_runs(
    app: App, me: Caller, pages: Pages, clock: SetClock, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    job_id = begin_job(me, pages)
    call_step(me, job_id, "fetch")
    left: list[timedelta] = []

    def note() -> None:
        with app.sessions.read() as session:
            job = jobs.job_state(session, UUID(job_id))
        assert job is not None
        assert job.lease_expires_at is not None
        left.append(job.lease_expires_at - clock())

    def extract(source: Source) -> Extraction:
        note()
        clock.forward(seconds=50)
        app.tools.leases.renew()
        note()
        return Extraction.plain("Boats", TEXT)

    monkeypatch.setitem(AVAILABLE_EXTRACTORS, Kind.WEB_ARTICLE, extract)
    if where == "in a request":
        call_step(me, job_id, "extract")
    else:
        assert take_next_step(app.tools)
    assert left == [timedelta(seconds=60)] * 2
    assert app.tools.leases.held() == []


def test_only_the_present_attempt_at_a_step_renews_its_lease(app: App, me: Caller, pages: Pages) -> None:
    job_id = UUID(begin_job(me, pages))
    with app.sessions.begin() as session:
        claim = start_fetch(session, job_id, LEASE, "test")
    assert claim
    with app.sessions.begin() as session:
        until = session.now + 2 * LEASE
        step_claims.BACKLOG.renew(session, [(job_id, claim.attempt), (uuid4(), 1)], until)
        renewed = jobs.job_state(session, job_id)
        step_claims.BACKLOG.renew(session, [(job_id, claim.attempt - 1)], until + LEASE)
        assert jobs.job_state(session, job_id) == renewed
    assert renewed is not None
    assert renewed.lease_expires_at == claim.lease_expires_at + LEASE


def test_jobs_stay_unchanged_without_an_article_extractor(app: App, me: Caller, pages: Pages) -> None:
    job_id = begin_job(me, pages)
    call_step(me, job_id, "fetch")
    before = me.get(f"/api/ingestion-jobs/{job_id}").json()
    AVAILABLE_EXTRACTORS.clear()
    assert job_problem(call_step(me, job_id, "extract")) == (409, "NOT_READY")
    assert not take_next_step(app.tools)
    assert me.get(f"/api/ingestion-jobs/{job_id}").json() == before


def test_a_worker_does_not_wait_for_a_job_that_another_one_reads(app: App, me: Caller, pages: Pages) -> None:
    job_id = UUID(begin_job(me, pages))
    call_step(me, str(job_id), "fetch")
    with app.sessions.begin() as session:
        assert claim_extraction(session, job_id, LEASE, "test")
    assert not take_step(app.tools, job_id)


def refuse_as_busy(url: str) -> None:
    raise FetchBusy
