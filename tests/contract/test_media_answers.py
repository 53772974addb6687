"""Whatever is asked of a media over GET: capabilities stand in each answer, and internal codes in none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from nexus.app import App, build
from nexus.db.session import Session
from nexus.extract import AVAILABLE_EXTRACTORS
from nexus.media import history, queries, runner
from nexus.media.fragments import read_text_page
from nexus.media.queries import ItemPage
from nexus.media.runner import Outcome
from nexus.states.media import Kind
from tests.kit import documents
from tests.kit.commands import Terminal
from tests.kit.http import Caller, data, follow
from tests.kit.media import good_extractor, new_media, row_of
from tests.kit.settings import make_settings
from tests.kit.sign_ins import cookie_of
from tests.kit.uploads import Uploader
from tests.kit.work import extract_item
from tools.reference import openapi_document

INTERNAL = "E_EXTRACTOR_NOT_IMPLEMENTED"
NAMES = {"can_read", "can_highlight", "can_quote", "can_search", "can_play", "can_download_file"}
#: This page lists many media, each with its own capabilities.
LIST = "/media"


def media_gets() -> list[str]:
    """Every path below /media that GET answers with JSON, as the OpenAPI document has them."""
    return [
        path
        for path, methods in openapi_document()["paths"].items()
        if path.startswith(LIST) and "application/json" in _success(methods).get("content", {})
    ]


def _success(methods: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = methods.get("get", {}).get("responses", {}).get("200", {})
    return found


def holders(path: str, body: Any) -> list[dict[str, Any]]:
    return body["items"] if path == LIST else [body]


@pytest.mark.parametrize("path", media_gets())
def test_capabilities_are_in_every_answer(app: App, me: Caller, path: str) -> None:
    AVAILABLE_EXTRACTORS[Kind.PDF] = good_extractor
    media_id = Uploader(app, me.user).upload(documents.pdf("Boats"))
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    expected = data(me.get(f"/media/{media_id}"))["capabilities"]
    assert set(expected) == NAMES
    found = holders(path, data(me.get(path.format(media_id=media_id, number=1), params={"with": 1})))
    assert [one.get("capabilities") for one in found] == [expected]


class Counting:
    """A session that remembers how often it is asked."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        return getattr(self._session, name)


def test_capabilities_cost_no_query_of_their_own(app: App) -> None:
    """Whether a viewer may read a media and what they can do with it is one question."""
    user = uuid4()
    media_id = new_media(app, user)

    def text(session: Session, media_id: UUID, viewer: UUID) -> ItemPage[Any]:
        return read_text_page(session, queries.get_media(session, media_id, viewer))

    for part in (text, history.events):
        with app.sessions.read() as session:
            counting: Any = Counting(session)
            assert not part(counting, media_id, user).capabilities.can_read
        assert counting.asked == ["first", "all"]


def test_a_missing_extractor_is_a_failed_extraction_for_every_client(app: App, me: Caller) -> None:
    media_id = new_media(app, me.user)
    with follow(me) as stream:
        runner.fail_unimplemented(app.tools, media_id)
        told = [stream.next().data for _ in range(2)]
    assert row_of(app.sessions, media_id).last_error_code == INTERNAL
    shown = data(me.get(f"/media/{media_id}"))
    assert (shown["last_error_code"], shown["failure_stage"]) == ("E_EXTRACTION_FAILED", "extract")
    assert told[-1]["error_code"] == "E_EXTRACTION_FAILED"
    assert data(me.get(f"/media/{media_id}/history"))["items"][-1]["error_code"] == "E_EXTRACTION_FAILED"
    for answer in everything(app, me, media_id):
        assert INTERNAL not in answer


def everything(app: App, me: Caller, media_id: UUID) -> Iterator[str]:
    """Whatever a client can see of a media, over the API and on pages."""
    for path in media_gets():
        yield me.get(path.format(media_id=media_id, number=1), params={"with": 1}).text
    library = me.default_library()
    yield me.get(f"/libraries/{library}/media").text
    cookie = cookie_of(app.sessions, me.user)
    for path in ("/", "/?show=failed", f"/items/{media_id}", f"/items/{media_id}/row"):
        answer = me.get(path, headers={"Authorization": "", "Cookie": cookie})
        assert (answer.status_code, str(media_id) in answer.text) == (200, True), path
        yield answer.text


def test_a_missing_extractor_is_a_failed_extraction_in_the_terminal(
    tmp_path: Path, migrated_sqlite: Path
) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    (data_dir / "nexus.sqlite3").write_bytes(migrated_sqlite.read_bytes())
    terminal = Terminal(
        tmp_path, {"NEXUS_DATA_DIR": str(data_dir), "NEXUS_PLUGINS": "tests.kit.plugins.no_extractors"}
    )
    terminal.run("add", "https://youtu.be/dQw4w9WgXcQ")
    (media,) = _listed(terminal)
    app = build(make_settings(f"sqlite:///{data_dir / 'nexus.sqlite3'}", data_dir))
    runner.fail_unimplemented(app.tools, UUID(media["id"]))
    app.close()
    (media,) = _listed(terminal)
    assert media["last_error_code"] == "E_EXTRACTION_FAILED"
    for command in (("status",), ("status", "--json"), ("extract", "https://youtu.be/dQw4w9WgXcQ", "--json")):
        ran = terminal.run(*command)
        assert "E_EXTRACTION_FAILED" in ran.out + ran.err, command
        assert INTERNAL not in ran.out + ran.err, command


def _listed(terminal: Terminal) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(terminal.run("status", "--json").out)
    return found
