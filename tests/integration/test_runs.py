"""What tests put into stores stands below a prefix of their run."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import uuid4

import pytest

from nexus.app import App
from tests import runs
from tests.files import Person, pdf, stored
from tests.support import make_settings


def test_an_upload_of_a_test_stands_below_the_runs_prefix(app: App) -> None:
    media_id = Person(app).upload(pdf())
    assert stored(app) == [f"{runs.run_prefix()}media/{media_id}/original.pdf"]


def test_settings_of_tests_have_the_runs_prefix(tmp_path: Path) -> None:
    assert make_settings("sqlite://", tmp_path).storage_prefix == runs.run_prefix()


@pytest.mark.parametrize(("prefix", "fine"), [("", False), ("test_runs/1/", True)])
def test_a_file_outside_of_a_run_is_noticed(tmp_path: Path, prefix: str, fine: bool) -> None:
    store = tmp_path / "deep" / "data" / "storage"
    place = store / f"{prefix}media" / str(uuid4()) / "original.pdf"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"left")
    assert list(runs.stores(tmp_path)) == [store]
    assert runs.is_run_scoped(store) is fine
    shutil.rmtree(store)
