"""Editorial jobs over HTTP: fetched once, read once, however often and by however many it is asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from nexus import logging
from nexus.app import App
from nexus.editorial import editing, jobs, steps
from nexus.errors import EmptyContent, FetchBusy, WorkError
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction
from nexus.libraries.quota import Operation
from nexus.states.job import Status
from nexus.upkeep import sweep
from nexus.web.http import auth
from tests.documents import pdf
from tests.editorial import TEXT, app, begin, call, events, job_of, me, pages, parsers, ready, site
from tests.http import Caller, Site, refused, serve
from tests.integration.test_whole_path import ARTICLE, SENTENCES
from tests.job_walks import LEASE, PAGE
from tests.logs import logging_as_before
from tests.pages import Answer, Pages
from tests.support import SetClock, put_job, row_of

__all__ = ["app", "logging_as_before", "me", "pages", "parsers", "site"]

LATE = [Status.EXTRACTED, Status.READY_TO_GENERATE, Status.GENERATING, Status.SAVED]


def test_a_job_waits_until_it_is_fetched(me: Caller, pages: Pages) -> None:
    job = job_of(me.post("/api/ingestion-jobs", json={"url": pages.url("/boats#top")}))
    assert (job["status"], job["canonicalUrl"]) == ("QUEUED", pages.url("/boats"))
    assert (job["manuallyProvided"], job["storyId"], job["rawHtml"]) == (False, None, None)
    assert pages.asked == []


def test_a_fetch_leaves_the_page_and_the_rest_is_done_without_being_asked_for(
    app: App, me: Caller, pages: Pages
) -> None:
    job_id = begin(me, pages)
    job = job_of(call(me, job_id, "fetch"))
    assert (job["status"], job["httpStatus"], job["contentType"]) == (
        "EXTRACTING",
        200,
        "text/html; charset=utf-8",
    )
    assert job["rawHtml"] == ARTICLE
    assert job["fetchedAt"]
    assert editing.run_next(app.tools)
    job = job_of(me.get(f"/api/ingestion-jobs/{job_id}"))
    assert (job["status"], job["extractedTitle"], job["rawHtml"]) == (
        "READY_TO_GENERATE",
        "The harbour",
        None,
    )
    assert SENTENCES[0] in job["extractedText"]
    assert events(me, job_id) == ["create", "fetch", "fetched", "claim_extraction", "extracted"]


def test_extracting_twice_does_it_once(me: Caller, pages: Pages) -> None:
    job_id = begin(me, pages)
    call(me, job_id, "fetch")
    first, second = call(me, job_id, "extract").json(), call(me, job_id, "extract").json()
    assert (first["skipped"], second["skipped"]) == (False, True)
    assert first["job"] == second["job"]
    assert events(me, job_id).count("extracted") == 1


@pytest.mark.usefixtures("logging_as_before")
@pytest.mark.parametrize("json", [True, False], ids=["json", "console"])
class TestWhatMonitoringSearchesFor:
    """The words of a skip, as they stand in the log."""

    @pytest.mark.parametrize(
        ("status", "words"),
        [
            (Status.READY_TO_GENERATE, "already extracted (status=READY_TO_GENERATE)"),
            (Status.GENERATING, "in terminal state (status=GENERATING)"),
            (Status.SAVED, "in terminal state (status=SAVED)"),
        ],
    )
    def test_a_second_extraction_says_why_it_is_skipped(
        self,
        app: App,
        me: Caller,
        pages: Pages,
        capsys: pytest.CaptureFixture[str],
        json: bool,
        status: Status,
        words: str,
    ) -> None:
        job_id = ready(me, pages)
        put_job(app.sessions, UUID(job_id), status)
        logging.configure(json=json, level="info")
        call(me, job_id, "extract")
        assert f"[EXTRACT] Job {job_id} {words}, skipping" in capsys.readouterr().err

    def test_an_extraction_that_another_worker_finished_says_so(
        self,
        app: App,
        me: Caller,
        pages: Pages,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        json: bool,
    ) -> None:
        job_id = begin(me, pages)
        call(me, job_id, "fetch")
        finish = another_worker(app, job_id)
        monkeypatch.setattr(editing, "_wait_for_reader", lambda *_: finish())
        logging.configure(json=json, level="info")
        assert call(me, job_id, "extract").json()["skipped"] is True
        said = f"[EXTRACT] Job {job_id} already extracted by another worker, skipping"
        assert said in capsys.readouterr().err


def another_worker(app: App, job_id: str, error: WorkError | None = None) -> Callable[[], None]:
    """Claims the extraction; called, it ends it with a text, or with an error."""
    with app.sessions.begin() as session:
        claim = jobs.claim_extraction(session, UUID(job_id), LEASE, "test")
    assert claim

    def finish() -> None:
        with app.sessions.begin() as session:
            if error is None:
                found = Extraction.plain("Boats", TEXT)
                assert jobs.mark_extracted(session, claim.id, claim.attempt, found, None, "test")
            else:
                assert jobs.fail(session, claim.id, Status.EXTRACTING, claim.attempt, error, "test")

    return finish


def test_a_failed_extraction_answers_the_same_whoever_won_the_race(
    app: App, me: Caller, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = begin(me, pages)
    call(me, job_id, "fetch")
    finish = another_worker(app, job_id, EmptyContent())
    monkeypatch.setattr(editing, "_wait_for_reader", lambda *_: finish())
    waited, later = call(me, job_id, "extract"), call(me, job_id, "extract")
    AVAILABLE_EXTRACTORS.clear()
    without_a_reader = call(me, job_id, "extract")
    body = waited.json()
    assert (body["success"], body["skipped"], body["error"]) == (False, False, "E_EMPTY_CONTENT")
    assert body["message"].startswith("[EXTRACT] ")
    assert body["job"]["status"] == "FAILED"
    for answer in (later, without_a_reader):
        assert (answer.status_code, answer.json()) == (200, body)


def test_a_failed_fetch_has_nothing_to_extract(me: Caller, pages: Pages) -> None:
    job_id = begin(me, pages, "/missing")
    call(me, job_id, "fetch")
    assert refused(call(me, job_id, "extract")) == (409, "NOT_READY")


def test_a_failed_draft_does_not_make_its_text_unextracted(app: App, me: Caller, pages: Pages) -> None:
    job_id = ready(me, pages)
    put_job(app.sessions, UUID(job_id), Status.FAILED)
    answer = call(me, job_id, "extract").json()
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
    job_id = begin(me, pages)
    job = job_of(call(me, job_id, "fetch"))
    assert (job["status"], job["errorCode"], job["fetchedAt"]) == ("FAILED", code, None)
    assert (job["httpStatus"], job["contentType"]) == (page.status, page.content_type)
    pages["/boats"] = Answer(ARTICLE.encode())
    job = job_of(call(me, job_id, "retry"))
    assert (job["httpStatus"], job["contentType"]) == (200, "text/html; charset=utf-8")


def test_a_page_that_never_answered_has_neither_status_nor_content_type(me: Caller) -> None:
    made = me.post("/api/ingestion-jobs", json={"url": "https://127.0.0.1:1/"})
    job = job_of(call(me, job_of(made)["id"], "fetch"))
    assert (job["status"], job["httpStatus"], job["contentType"]) == ("FAILED", None, None)


def test_a_pdf_that_its_site_calls_something_else_is_read_as_a_pdf(me: Caller, pages: Pages) -> None:
    pages["/boats"] = Answer(pdf("\n".join(SENTENCES)), "application/octet-stream")
    job_id = begin(me, pages)
    assert job_of(call(me, job_id, "fetch"))["contentType"] == "application/octet-stream"
    assert job_of(call(me, job_id, "extract"))["status"] == "READY_TO_GENERATE"


@pytest.mark.parametrize("status", LATE)
def test_what_is_extracted_is_skipped_and_nothing_changes(
    app: App, me: Caller, pages: Pages, status: Status
) -> None:
    job_id = ready(me, pages)
    put_job(app.sessions, UUID(job_id), status)
    before = me.get(f"/api/ingestion-jobs/{job_id}").json()
    answer = call(me, job_id, "extract").json()
    assert (answer["success"], answer["skipped"]) == (True, True)
    assert me.get(f"/api/ingestion-jobs/{job_id}").json() == before


def test_nothing_is_extracted_before_it_is_fetched(me: Caller, pages: Pages) -> None:
    job_id = begin(me, pages)
    assert refused(call(me, job_id, "extract")) == (409, "NOT_READY")
    assert events(me, job_id) == ["create"]


def test_a_fetch_that_runs_is_not_stolen(app: App, me: Caller, pages: Pages) -> None:
    job_id = begin(me, pages)
    with app.sessions.begin() as session:
        jobs.start_fetch(session, UUID(job_id), LEASE, "test")
    assert refused(call(me, job_id, "extract")) == (409, "NOT_READY")
    assert refused(call(me, job_id, "fetch")) == (409, "E_INVALID_STATE")


def test_many_who_extract_at_once_get_one_extraction(app: App, site: Site, pages: Pages) -> None:
    user = uuid4()
    job_id = begin(site.caller(user), pages)
    call(site.caller(user), job_id, "fetch")
    callers = [site.caller(user) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda one: call(one, job_id, "extract"), callers))
    assert {answer.status_code for answer in answers} == {200}
    assert sum(not answer.json()["skipped"] for answer in answers) == 1
    assert events(callers[0], job_id).count("claim_extraction") == 1


def test_a_page_that_is_not_there_fails_with_its_step_and_what_to_do(me: Caller, pages: Pages) -> None:
    job = job_of(call(me, begin(me, pages, "/missing"), "fetch"))
    assert (job["status"], job["errorCode"]) == ("FAILED", "E_FETCH_HTTP_4XX")
    assert job["errorMessage"].startswith("[FETCH] ")


def test_a_page_without_an_article_fails_at_its_step(me: Caller, pages: Pages) -> None:
    pages["/empty"] = Answer(b"<html><title>Nothing</title><body><p>Hardly a word.</p></body></html>")
    job_id = begin(me, pages, "/empty")
    call(me, job_id, "fetch")
    job = job_of(call(me, job_id, "extract"))
    assert (job["status"], job["errorCode"]) == ("FAILED", "E_EMPTY_CONTENT")
    assert job["errorMessage"].startswith("[EXTRACT] ")
    assert job["rawHtml"] is None


def test_a_retry_fetches_again_and_leaves_nothing_of_the_failure(me: Caller, pages: Pages) -> None:
    job_id = begin(me, pages, "/later")
    call(me, job_id, "fetch")
    pages["/later"] = Answer(ARTICLE.encode())
    job = job_of(call(me, job_id, "retry"))
    assert (job["status"], job["errorCode"], job["errorMessage"]) == ("EXTRACTING", None, None)
    assert job_of(call(me, job_id, "extract"))["status"] == "READY_TO_GENERATE"
    assert refused(call(me, job_id, "retry")) == (409, "E_INVALID_STATE")


class TestManualEntry:
    def test_from_the_start_it_is_ready_at_once(self, me: Caller) -> None:
        job = job_of(me.post("/api/ingestion-jobs", json={"title": "Boats", "text": TEXT}))
        assert (job["status"], job["manuallyProvided"], job["url"]) == ("READY_TO_GENERATE", True, None)
        assert (job["extractedTitle"], job["extractedText"]) == ("Boats", TEXT)
        assert events(me, job["id"]) == ["create", "manual_entry", "extracted"]

    def test_a_page_that_can_not_be_had_is_entered_by_hand(self, me: Caller, pages: Pages) -> None:
        job_id = begin(me, pages, "/paywall")
        call(me, job_id, "fetch")
        job = job_of(call(me, job_id, "manual-entry", title="Boats", text=TEXT))
        assert (job["status"], job["manuallyProvided"]) == ("READY_TO_GENERATE", True)
        assert (job["errorCode"], job["errorMessage"]) == (None, None)
        assert job["mediaId"] is None

    def test_it_does_not_wait_for_a_fetch_that_lasts(self, app: App, me: Caller, pages: Pages) -> None:
        job_id = begin(me, pages)
        with app.sessions.begin() as session:
            claim = jobs.start_fetch(session, UUID(job_id), LEASE, "test")
        job = job_of(call(me, job_id, "manual-entry", title="Mine", text=TEXT))
        assert (job["status"], job["manuallyProvided"], job["extractedTitle"]) == (
            "READY_TO_GENERATE",
            True,
            "Mine",
        )
        assert events(me, job_id) == ["create", "fetch", "fail", "manual_entry", "extracted"]
        assert claim
        with app.sessions.begin() as session:
            assert not jobs.mark_fetched(session, UUID(job_id), claim.attempt, PAGE, "test")
            error = EmptyContent()
            assert not jobs.fail(session, UUID(job_id), Status.FETCHING, claim.attempt, error, "test")
        assert job_of(me.get(f"/api/ingestion-jobs/{job_id}")) == job

    def test_it_wins_over_an_extraction_that_runs(self, app: App, me: Caller, pages: Pages) -> None:
        job_id = begin(me, pages)
        call(me, job_id, "fetch")
        with app.sessions.begin() as session:
            claim = jobs.claim_extraction(session, UUID(job_id), LEASE, "test")
        call(me, job_id, "manual-entry", title="Mine", text=TEXT)
        assert claim
        with app.sessions.begin() as session:
            assert not jobs.fail(
                session, UUID(job_id), Status.EXTRACTING, claim.attempt, EmptyContent(), "test"
            )
        assert job_of(me.get(f"/api/ingestion-jobs/{job_id}"))["extractedTitle"] == "Mine"

    @pytest.mark.parametrize(
        ("title", "text"), [("", TEXT), ("Boats", "short"), ("Boats", "x" * 50_001), ("x" * 501, TEXT)]
    )
    def test_what_is_no_article_is_refused_and_nothing_changes(
        self, me: Caller, pages: Pages, title: str, text: str
    ) -> None:
        job_id = begin(me, pages)
        assert refused(call(me, job_id, "manual-entry", title=title, text=text)) == (400, "E_INVALID_REQUEST")
        assert events(me, job_id) == ["create"]
        made = me.post("/api/ingestion-jobs", json={"title": title, "text": text})
        assert refused(made) == (400, "E_INVALID_REQUEST")
        assert len(me.get("/api/ingestion-jobs").json()["jobs"]) == 1

    def test_what_is_ready_already_is_not_entered_over(self, me: Caller, pages: Pages) -> None:
        job_id = ready(me, pages)
        answer = call(me, job_id, "manual-entry", title="Boats", text=TEXT)
        assert refused(answer) == (409, "E_INVALID_STATE")


def test_without_scripts_too_a_page_gives_up_after_thirty_seconds(
    app: App, me: Caller, pages: Pages, clock: SetClock
) -> None:
    """It stops looking again by itself, which would take away what is typed meanwhile."""
    job_id = begin(me, pages)
    clock.forward(minutes=5)
    editing.leave_fetch(app.tools, UUID(job_id), "test")

    def shown() -> tuple[bool, bool]:
        html = the_page(app, me, job_id)
        return 'http-equiv="refresh"' in html, bool(re.search('<p class="overdue"[^>]*(?<! hidden)>', html))

    assert shown() == (True, False)
    clock.forward(seconds=29)
    assert shown() == (True, False)
    clock.forward(seconds=1)
    assert shown() == (False, True)
    call(me, job_id, "manual-entry", title="Mine", text=TEXT)
    assert shown() == (False, False)


def the_page(app: App, me: Caller, job_id: str) -> str:
    cookie = f"{auth.COOKIE}={auth.session_token(app.settings, me.user)}"
    return me.get(f"/admin/jobs/{job_id}", headers={"Authorization": "", "Cookie": cookie}).text


class TestTheArticle:
    """What a job reads is also a media in its creator's library."""

    def test_is_readable_without_a_second_fetch(self, app: App, me: Caller, pages: Pages) -> None:
        job = job_of(me.get(f"/api/ingestion-jobs/{ready(me, pages)}"))
        media = me.get(f"/media/{job['mediaId']}").json()["data"]
        assert (media["processing_status"], media["canonical_url"]) == (
            "ready_for_reading",
            pages.url("/boats"),
        )
        assert len(pages.asked) == 1

    def test_that_is_readable_already_stays_as_it_is(self, app: App, me: Caller, pages: Pages) -> None:
        first = job_of(me.get(f"/api/ingestion-jobs/{ready(me, pages)}"))
        pages["/boats"] = Answer(ARTICLE.replace("harbour", "lighthouse").encode())
        second = job_of(me.get(f"/api/ingestion-jobs/{ready(me, pages)}"))
        assert second["mediaId"] == first["mediaId"]
        assert "lighthouse" in second["extractedText"]
        assert row_of(app.sessions, UUID(first["mediaId"])).title == "The harbour"

    def test_entered_by_hand_is_no_media(self, me: Caller) -> None:
        me.post("/api/ingestion-jobs", json={"title": "Boats", "text": TEXT})
        assert me.get("/media").json()["data"]["items"] == []


class TestALostWorker:
    def test_a_fetch_is_taken_up_again(self, app: App, me: Caller, pages: Pages, clock: SetClock) -> None:
        job_id = begin(me, pages)
        with app.sessions.begin() as session:
            lost = jobs.start_fetch(session, UUID(job_id), LEASE, "test")
        assert not editing.run_next(app.tools)
        clock.forward(seconds=LEASE.total_seconds() + 1)
        assert editing.run_next(app.tools)
        assert job_of(me.get(f"/api/ingestion-jobs/{job_id}"))["status"] == "READY_TO_GENERATE"
        assert lost
        with app.sessions.begin() as session:
            error = EmptyContent()
            assert not jobs.fail(session, UUID(job_id), Status.FETCHING, lost.attempt, error, "test")

    def test_an_extraction_is_taken_up_again_and_fails_after_the_third(
        self, app: App, me: Caller, pages: Pages, clock: SetClock
    ) -> None:
        job_id = begin(me, pages)
        call(me, job_id, "fetch")
        for _ in range(3):
            with app.sessions.begin() as session:
                assert jobs.claim_extraction(session, UUID(job_id), LEASE, "test")
            clock.forward(seconds=LEASE.total_seconds() + 1)
        sweep.run(app.tools, app.queue)
        job = job_of(me.get(f"/api/ingestion-jobs/{job_id}"))
        assert (job["status"], job["errorCode"]) == ("FAILED", "E_JOB_TIMEOUT")
        assert job["errorMessage"].startswith("[EXTRACT] ")


class TestWhoSees:
    def test_a_job_is_its_creators(self, site: Site, me: Caller, pages: Pages) -> None:
        job_id = begin(me, pages)
        other = site.caller()
        assert refused(other.get(f"/api/ingestion-jobs/{job_id}")) == (404, "E_NOT_FOUND")
        for step in ("fetch", "extract", "retry"):
            assert refused(call(other, job_id, step)) == (404, "E_NOT_FOUND")
        assert other.get("/api/ingestion-jobs").json()["jobs"] == []

    def test_admins_of_its_library_see_it_and_members_do_not(
        self, site: Site, me: Caller, pages: Pages
    ) -> None:
        library = me.post("/libraries", json={"name": "Desk"}).json()["data"]["id"]
        admin, member = site.caller(), site.caller()
        for who, role in ((admin, "admin"), (member, "member")):
            who.get("/libraries")
            me.post(f"/libraries/{library}/members", json={"user_id": str(who.user), "role": role})
        body = {"url": pages.url("/boats"), "libraryId": library}
        job = job_of(me.post("/api/ingestion-jobs", json=body))
        assert job_of(admin.get(f"/api/ingestion-jobs/{job['id']}"))["id"] == job["id"]
        assert refused(member.get(f"/api/ingestion-jobs/{job['id']}")) == (404, "E_NOT_FOUND")
        assert refused(member.post("/api/ingestion-jobs", json=body)) == (403, "E_FORBIDDEN")

    def test_a_list_goes_on_where_the_page_before_ended(
        self, me: Caller, pages: Pages, clock: SetClock
    ) -> None:
        made = []
        for _ in range(5):
            made.append(begin(me, pages))
            clock.forward(seconds=1)
        call(me, made[0], "fetch")
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
        assert refused(me.get("/api/ingestion-jobs", params={"status": "nonsense"})) == (
            400,
            "E_INVALID_REQUEST",
        )
        assert refused(me.get("/api/ingestion-jobs", params={"cursor": "nonsense"})) == (
            400,
            "E_INVALID_REQUEST",
        )


@pytest.mark.parametrize(
    "body", [{}, {"url": ""}, {"url": "nonsense"}, {"url": "https://u:p@example.com/"}, {"text": TEXT}, []]
)
def test_a_job_needs_an_address_or_a_whole_text(me: Caller, body: object) -> None:
    status, error = refused(me.post("/api/ingestion-jobs", json=body))
    assert (status, error) in {(400, "E_INVALID_REQUEST"), (400, "E_INVALID_URL")}
    assert me.get("/api/ingestion-jobs").json()["jobs"] == []


def test_addresses_count_towards_the_days_allowance(app: App, pages: Pages) -> None:
    limited = replace(app, limits={Operation.INGEST_URLS: 1})
    with serve(limited) as site:
        me = site.caller()
        begin(me, pages)
        again = me.post("/api/ingestion-jobs", json={"url": pages.url("/boats")})
        assert refused(again) == (429, "E_RATE_LIMITED")


class TestWhatAWorkerTakesUp:
    def test_a_busy_site_is_asked_later_and_costs_no_try(
        self, app: App, me: Caller, pages: Pages, clock: SetClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job_id = begin(me, pages)
        with monkeypatch.context() as busy:
            busy.setattr(app.tools.fetcher, "get", refuse_as_busy)
            assert job_of(call(me, job_id, "fetch"))["status"] == "FETCHING"
        assert not editing.run_next(app.tools)
        clock.forward(seconds=steps.LATER.total_seconds())
        assert editing.run_next(app.tools)
        with app.sessions.read() as session:
            job = jobs.get(session, UUID(job_id))
        assert (job.status, job.tries) == ("READY_TO_GENERATE", 0)

    def test_everybody_has_his_turn(self, app: App, site: Site, pages: Pages, clock: SetClock) -> None:
        many, one = site.caller(), site.caller()
        asked = [begin(many, pages) for _ in range(3)] + [begin(one, pages)]
        for job_id in asked:
            editing.leave_fetch(app.tools, UUID(job_id), "test")
            clock.forward(seconds=1)
        with app.sessions.read() as session:
            waiting = steps.due(session, 4)
        assert [str(job_id) for job_id in waiting] == [asked[0], asked[3], asked[1], asked[2]]

    def test_a_step_that_lasts_keeps_its_lease(self, app: App, me: Caller, pages: Pages) -> None:
        job_id = UUID(begin(me, pages))
        with app.sessions.begin() as session:
            claim = jobs.start_fetch(session, job_id, LEASE, "test")
        assert claim
        with app.sessions.begin() as session:
            steps.renew_leases(session, [(job_id, claim.attempt), (uuid4(), 1)], 2 * LEASE)
            renewed = steps.state(session, job_id)
            steps.renew_leases(session, [(job_id, claim.attempt - 1)], 9 * LEASE)
            assert steps.state(session, job_id) == renewed
        assert renewed is not None
        assert renewed.lease_expires_at == claim.lease_expires_at + LEASE

    def test_without_a_reader_of_articles_nothing_changes(self, app: App, me: Caller, pages: Pages) -> None:
        job_id = begin(me, pages)
        call(me, job_id, "fetch")
        before = me.get(f"/api/ingestion-jobs/{job_id}").json()
        AVAILABLE_EXTRACTORS.clear()
        assert refused(call(me, job_id, "extract")) == (409, "NOT_READY")
        assert not editing.run_next(app.tools)
        assert me.get(f"/api/ingestion-jobs/{job_id}").json() == before

    def test_what_another_reads_is_not_waited_for(self, app: App, me: Caller, pages: Pages) -> None:
        job_id = UUID(begin(me, pages))
        call(me, str(job_id), "fetch")
        with app.sessions.begin() as session:
            assert jobs.claim_extraction(session, job_id, LEASE, "test")
        assert not editing.run(app.tools, job_id)


def refuse_as_busy(url: str) -> None:
    raise FetchBusy
