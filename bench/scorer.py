"""The labelled pages and the tool that scores them. The pages belong to their publishers, so they are not here."""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import cache
from pathlib import Path
from types import ModuleType


class NoData(Exception):
    """There are no labelled pages here."""


def data_folder(name: str = "articles") -> Path:
    folder = Path(os.environ.get("DATA") or "../shared/data") / name
    if not folder.is_dir():
        raise NoData(f"There is no {folder}. Set DATA to the folder that holds `{name}`.")
    return folder.resolve()


def tool() -> Path:
    path = data_folder().parent.parent / "tools" / "score_extraction.py"
    if not path.is_file():
        raise NoData(f"The tool that scores pages is not there: {path}.")
    return path


@cache
def scorer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("score_extraction", tool())
    if spec is None or spec.loader is None:
        raise NoData(f"The tool that scores pages can't be read: {tool()}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
