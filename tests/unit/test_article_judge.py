"""What the forest is told about the blocks of a page, and the forests that judge pages they have not seen."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest

from bench import folds
from nexus.extract.article.blocks import Block, cut_blocks
from nexus.extract.article.class_names import BIT, GROUPS, groups_of
from nexus.extract.article.cues import count_cues
from nexus.extract.article.features import describe_blocks, describe_page
from nexus.extract.article.heads import read_head
from nexus.extract.article.page import body_of, parse_page

TOLD = "The ferry left at dawn, and nobody on the quay had expected it to come back before the spring."
OTHER = "The museum of the harbour is closed until the roof is repaired, which will take the whole summer."


def described(html: str) -> dict[str, list[float]]:
    """Return the row of each block by its text."""
    root, _ = parse_page(html)
    assert root is not None
    blocks, scopes = cut_blocks(body_of(root))
    texts: list[Block] = [block for block in blocks if block.text]
    rows = describe_blocks(texts, scopes, describe_page(read_head(root), None, ("", "")))
    return {block.text: row for block, row in zip(texts, rows, strict=True)}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Sign up for our newsletter!", 0),
        ("© 2026 The Coast. All rights reserved.", 1),
        ("Teilen auf Facebook", 2),
        ("Lire aussi : la suite", 3),
        ("12 comentarios", 4),
        ("Foto: dpa", 5),
    ],
)
def test_lines_around_an_article_are_known_by_their_words(text: str, kind: int) -> None:
    counts = count_cues(text)
    assert max(counts) == counts[kind] > 0


def test_a_sentence_has_few_words_of_the_lines_around_an_article() -> None:
    assert sum(count_cues(TOLD)) <= 1


def test_a_block_that_linked_data_holds_differs_from_one_that_it_does_not_hold() -> None:
    data = json.dumps({"@type": "NewsArticle", "articleBody": TOLD})
    body = f"<body><div><p>{TOLD}</p><p>{OTHER}</p></div></body>"
    without = described(f"<html><head></head>{body}</html>")
    rows = described(f'<html><head><script type="application/ld+json">{data}</script></head>{body}</html>')
    told, other = (changed(without[text], rows[text]) for text in (TOLD, OTHER))
    assert told != other


def changed(before: list[float], after: list[float]) -> list[tuple[float, float]]:
    return [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]


def test_blocks_of_the_article_with_the_title_differ_from_those_of_the_next_one() -> None:
    def articles(first: str, second: str) -> str:
        return (
            "<html><head><title>The ferry runs again</title></head><body><div>"
            f"<article><h1>{first}</h1><p>{TOLD}</p></article><article><h1>{second}</h1><p>{TOLD} Again.</p></article>"
            "</div></body></html>"
        )

    ours = described(articles("The ferry runs again", "The museum is closed"))[TOLD]
    others = described(articles("The museum is closed", "The ferry runs again"))[TOLD]
    assert changed(ours, others)


def features_of(tree: Any) -> list[int]:
    return [tree[0], *features_of(tree[2]), *features_of(tree[3])] if isinstance(tree, list) else []


def test_every_forest_was_grown_on_the_numbers_that_blocks_are_described_by() -> None:
    row = described(f"<html><body><p>{TOLD}</p></body></html>")[TOLD]
    shipped = json.loads(files("nexus.extract.article").joinpath("model.json").read_text("utf-8"))
    for forest in (shipped, *json.loads(folds.PATH.read_text("utf-8"))):
        assert forest["features"] == len(row)
        assert max(feature for tree in forest["trees"] for feature in features_of(tree)) < len(row)


def test_all_pages_of_a_site_are_judged_by_one_forest_that_has_not_seen_it() -> None:
    addresses = ("https://www.coast.example/a", "https://news.coast.example/2026/b", "http://coast.example/")
    found = {folds.fold_of("wcxb", str(at), {"url": url}) for at, url in enumerate(addresses)}
    assert len(found) == 1
    assert found < set(range(folds.FOLDS))
    assert len(json.loads(folds.PATH.read_text("utf-8"))) == folds.FOLDS


@pytest.mark.parametrize("group", GROUPS)
def test_a_name_belongs_to_the_groups_whose_words_it_begins_with_or_equals(group: str) -> None:
    for word in GROUPS[group].split():
        beginning, stop, _ = word.partition(".")
        assert groups_of(beginning) & BIT[group]
        assert groups_of(f"my-{beginning.title()}") & BIT[group]
        assert bool(groups_of(f"{beginning}qq") & BIT[group]) is not bool(stop)
