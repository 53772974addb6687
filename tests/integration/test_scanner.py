"""A malware scanner sees every file before Nexus keeps it: uploads, imports, files at an address, pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nexus.app import App
from nexus.errors import InfectedFile, NotReady
from nexus.media.runner import Outcome
from nexus.scan import MalwareFound, Scanner, ScannerAway
from nexus.settings import Settings
from nexus.states.media import MediaStatus
from tests.kit import documents
from tests.kit.http import Caller
from tests.kit.http_imports import open_batch, stage_file, wait_for_import
from tests.kit.media import new_media, row_of, status_of
from tests.kit.pictures import fetch_pictures, illustrated, pictures_of, png
from tests.kit.servers.scanner import KNOWN, ClamdDouble, scanning
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.settings import make_settings
from tests.kit.uploads import Uploader, count_media, stored_paths, unique_pdf
from tests.kit.work import extract_item

SENTENCE = "The ferry left the harbour at noon and came back in the evening, as it does every day. "


@pytest.fixture
def scanner() -> Iterator[ClamdDouble]:
    with scanning() as listening:
        yield listening


@pytest.fixture
def settings(sqlite_url: str, tmp_path: Path, scanner: ClamdDouble, pages: Pages) -> Settings:
    return make_settings(
        sqlite_url,
        tmp_path,
        scanner=scanner.address,
        fetch_allow=[pages.place],
        fetch_delay_seconds=0,
        backoff_seconds=0,
    )


def test_an_upload_that_the_scanner_knows_is_not_kept(uploader: Uploader, scanner: ClamdDouble) -> None:
    body = unique_pdf() + KNOWN
    media_id = uploader.sent(body)
    with pytest.raises(InfectedFile):
        uploader.confirm(media_id)
    row = row_of(uploader.app.sessions, media_id)
    assert (row.processing_status, row.last_error_code) == (MediaStatus.FAILED, "E_INFECTED_FILE")
    assert stored_paths(uploader.app) == []
    assert scanner.seen == [body]


def test_other_uploads_are_kept(uploader: Uploader, scanner: ClamdDouble) -> None:
    body = unique_pdf(3_000_000)
    media_id = uploader.upload(body)
    assert len(stored_paths(uploader.app)) == 1
    assert row_of(uploader.app.sessions, media_id).file_sha256
    assert scanner.seen == [body]


@pytest.mark.parametrize(
    "says", [b"", b"stream: OK", b"INSTREAM size limit exceeded. ERROR\0", b"OK?\0"], ids=str
)
def test_without_a_verdict_nothing_changes_and_the_upload_is_confirmed_later(
    uploader: Uploader, scanner: ClamdDouble, says: bytes
) -> None:
    media_id = uploader.sent(unique_pdf())
    scanner.says = says
    with pytest.raises(NotReady):
        uploader.confirm(media_id)
    assert status_of(uploader.app.sessions, media_id) is MediaStatus.PENDING
    scanner.says = None
    assert uploader.confirm(media_id).media_id == media_id


def test_an_import_names_the_file_that_the_scanner_knows(
    app: App, me: Caller, installed_extractors: None
) -> None:
    batch = open_batch(me)
    stage_file(me, batch, "good.txt", (SENTENCE * 4).encode())
    stage_file(me, batch, "bad.txt", (SENTENCE * 4).encode() + KNOWN)
    me.post(f"/imports/batches/{batch}/start")
    paused = wait_for_import(me, "PAUSED")
    wrong = {one["name"]: one["code"] for one in paused["batches"][0]["sources"] if one["code"]}
    assert wrong == {"bad.txt": "E_INFECTED_FILE"}
    assert (count_media(app), stored_paths(app)) == (0, [])


def test_a_file_at_an_address_that_the_scanner_knows_is_not_kept(
    app: App, pages: Pages, scanner: ClamdDouble, installed_extractors: None
) -> None:
    pages["/paper.pdf"] = Answer(documents.pdf(SENTENCE * 8) + KNOWN, "application/pdf")
    media_id = new_media(app, url=pages.url("/paper.pdf"))
    assert extract_item(app.tools, media_id) == Outcome.FAILED
    assert row_of(app.sessions, media_id).last_error_code == "E_FETCH_INFECTED"
    assert stored_paths(app) == []


def test_a_picture_that_the_scanner_knows_is_not_kept(app: App, pages: Pages, scanner: ClamdDouble) -> None:
    pages["/bad.png"] = Answer(png() + KNOWN, "image/png")
    pages["/good.png"] = Answer(png(), "image/png")
    media_id = illustrated(app, pages.url("/bad.png"), pages.url("/good.png"))
    fetch_pictures(app, media_id)
    bad, good = pictures_of(app, media_id)
    assert (bad.name, bad.error_code, good.error_code) == (None, "E_FETCH_INFECTED", None)
    assert len(stored_paths(app)) == 1


def test_a_scanner_that_is_away_is_tried_again(app: App, pages: Pages, scanner: ClamdDouble) -> None:
    pages["/good.png"] = Answer(png(), "image/png")
    media_id = illustrated(app, pages.url("/good.png"))
    scanner.says = b""
    fetch_pictures(app, media_id)
    (waiting,) = pictures_of(app, media_id)
    assert (waiting.name, waiting.error_code, waiting.tries) == (None, None, 1)
    scanner.says = None
    fetch_pictures(app, media_id)
    assert pictures_of(app, media_id)[0].name


def test_a_scanner_can_listen_at_a_path(tmp_path: Path) -> None:
    scanner = Scanner(str(tmp_path / "clamd.ctl"), 5)
    with pytest.raises(ScannerAway):
        scanner.ping()
    with scanning(scanner.address):
        scanner.ping()
        scanner.scan(b"harmless")
        with pytest.raises(MalwareFound):
            scanner.scan(KNOWN)


def test_what_the_scanner_knows_is_found_across_pieces() -> None:
    with scanning() as clamd:
        halves = [KNOWN[:20], b"", KNOWN[20:]]
        with pytest.raises(MalwareFound):
            list(Scanner(clamd.address, 5).watch(halves))
