"""Logs: JSON lines in prod, with their context, and never a secret."""

from __future__ import annotations

import json
import logging as standard
import threading
from typing import Any

import pytest
import structlog

from nexus import logging

pytestmark = pytest.mark.usefixtures("logging_as_before")


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_json_lines_carry_event_level_and_time(capsys: pytest.CaptureFixture[str]) -> None:
    logging.configure(json=True, level="info")
    logging.get_logger("nexus.test").info("it_happened", kind="video")
    standard.getLogger("other").warning("said %s", "so")
    first, second = lines(capsys)
    assert (first["event"], first["level"], first["kind"]) == ("it_happened", "info", "video")
    assert first["timestamp"].endswith("Z")
    assert (second["event"], second["level"]) == ("said so", "warning")


def test_exceptions_are_logged_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    logging.configure(json=True, level="info")
    try:
        raise ValueError("why")
    except ValueError:
        logging.get_logger("nexus.test").exception("it_broke")
    assert "ValueError: why" in lines(capsys)[0]["exception"]


@pytest.mark.parametrize("name", [*sorted(logging.PRIVATE), "Authorization", "jwt_secret"])
def test_private_fields_are_redacted(capsys: pytest.CaptureFixture[str], name: str) -> None:
    logging.configure(json=True, level="info")
    logging.get_logger("nexus.test").info("it_happened", **{name: "hunter2"})
    assert lines(capsys)[0][name] == "[redacted]"


def test_readable_lines_have_colours_for_a_person_alone(capsys: pytest.CaptureFixture[str]) -> None:
    logging.configure(json=False, level="info")
    logging.get_logger("nexus.test").info("it_happened", media_id="one")
    written = capsys.readouterr().err
    assert "media_id=one" in written
    assert "\x1b" not in written


def test_the_log_level_applies_to_every_logger(capsys: pytest.CaptureFixture[str]) -> None:
    logging.configure(json=True, level="warning")
    logging.get_logger("nexus.test").info("not_this")
    standard.getLogger("other").info("nor this")
    logging.get_logger("nexus.test").warning("this")
    assert [line["event"] for line in lines(capsys)] == ["this"]


def test_alembic_and_uvicorn_log_only_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    logging.configure(json=True, level="info")
    for name in ("alembic.runtime.migration", "uvicorn.error", "uvicorn.access"):
        standard.getLogger(name).info("chat")
    standard.getLogger("uvicorn.error").error("trouble")
    assert [line["event"] for line in lines(capsys)] == ["trouble"]


def test_a_task_binds_its_ids_and_unbinds_them(capsys: pytest.CaptureFixture[str]) -> None:
    logging.configure(json=True, level="info")
    log = logging.get_logger("nexus.test")
    with logging.task_log_context("r1", media_id="m1"):
        log.info("inside")
        with logging.task_log_context(None, media_id="m2"):
            log.info("deeper")
        log.info("back")
    log.info("outside")
    inside, deeper, back, outside = lines(capsys)
    assert (inside["request_id"], inside["media_id"]) == ("r1", "m1")
    assert (deeper["request_id"], deeper["media_id"]) == ("r1", "m2")
    assert (back["request_id"], back["media_id"]) == ("r1", "m1")
    assert "request_id" not in outside
    assert "media_id" not in outside


def test_a_task_unbinds_its_ids_after_an_error_too() -> None:
    with pytest.raises(ValueError, match="why"), logging.task_log_context("r1"):
        raise ValueError("why")
    assert structlog.contextvars.get_contextvars() == {}


def test_the_context_of_a_task_does_not_leak_into_other_threads(capsys: pytest.CaptureFixture[str]) -> None:
    logging.configure(json=True, level="info")
    with logging.task_log_context("r1"):
        other = threading.Thread(target=lambda: logging.get_logger("nexus.test").info("elsewhere"))
        other.start()
        other.join()
    assert "request_id" not in lines(capsys)[0]
