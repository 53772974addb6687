"""Tests store objects only below the prefix of their run."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import uuid4

import pytest

from nexus.app import App
from tests.kit import run_storage
from tests.kit.settings import make_settings
from tests.kit.uploads import Uploader, stored_paths, unique_pdf


def test_uploads_of_tests_are_stored_below_the_runs_prefix(app: App) -> None:
    media_id = Uploader(app).upload(unique_pdf())
    assert stored_paths(app) == [f"{run_storage.run_prefix()}media/{media_id}/original.pdf"]


def test_settings_of_tests_hold_the_runs_prefix(tmp_path: Path) -> None:
    assert make_settings("sqlite://", tmp_path).storage_prefix == run_storage.run_prefix()


@pytest.mark.parametrize(("prefix", "fine"), [("", False), ("test_runs/1/", True)])
def test_a_file_outside_of_a_run_is_noticed(tmp_path: Path, prefix: str, fine: bool) -> None:
    store = tmp_path / "deep" / "data" / "storage"
    place = store / f"{prefix}media" / str(uuid4()) / "original.pdf"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"left")
    assert list(run_storage.stores(tmp_path)) == [store]
    assert run_storage.is_run_scoped(store) is fine
    shutil.rmtree(store)
