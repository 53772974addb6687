"""Forests for pages that they have not seen: each is grown without a third of the sites of the labelled pages.

`python -m tools.train_article` grows them together with the forest that is shipped, which has seen every page.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zlib import crc32

from nexus.extract.article.forest import Forest, forest_from

FOLDS = 3
PATH = Path(__file__).parent / "folds.json"


def fold_of(name: str, key: str, truth: dict[str, Any]) -> int:
    """Return the fold of a page of a set. All pages of a site are in one."""
    return crc32(site_of(name, key, truth).encode()) % FOLDS


def site_of(name: str, key: str, truth: dict[str, Any]) -> str:
    """Return the site of a page. Pages of one set have no addresses, but their names tell."""
    if name == "readability":
        return re.sub(r"-?\d+$", "", key)
    labels = (urlsplit(truth.get("url") or "").hostname or key).split(".")
    return ".".join(labels[-3:] if len(labels[-1]) == 2 and len(labels[-2:][0]) <= 3 else labels[-2:])


@cache
def unseen_forest(fold: int) -> Forest:
    """Return the forest that was grown without the pages of a fold."""
    return forest_from(json.loads(PATH.read_text("utf-8"))[fold])
