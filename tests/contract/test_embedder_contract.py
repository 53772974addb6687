"""One contract over every model: the one that Nexus makes, a folder of the user's own, and a server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copytree

import pytest

from nexus.embed import Embedder, make_embedder
from nexus.embed.openai import TEXTS_PER_REQUEST
from nexus.settings import Settings
from tests.kit.models import cosine, embeds, made_model, numbers
from tests.kit.servers.openai_api import model as openai_server
from tests.kit.settings import make_settings

KINDS = ("local", "folder", "openai")
BRIDGE = "The council voted to close the old bridge over the river."
BREAD = "Knead the dough for ten minutes, then let it rise in a warm place."
PLANETS = "Jupiter is the largest planet, and most of its moons are made of ice."
TEXTS = (BRIDGE, BREAD, PLANETS)


@pytest.fixture(scope="module", params=KINDS)
def embedder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedder]:
    folder = tmp_path_factory.mktemp(request.param)
    with openai_server() as server:
        server.will(*[embeds] * 1000)
        made = make_embedder(_settings(request.param, folder, server.url))
        assert made is not None
        yield made
        made.close()


def _settings(kind: str, folder: Path, url: str) -> Settings:
    own = folder / "own"
    if kind == "folder":
        copytree(made_model().folder, own)
    return make_settings(
        "sqlite://", folder, embed=kind, embed_folder=own, embed_base_url=url, embed_model="m"
    )


def test_it_is_there_and_says_its_name_and_dimension(embedder: Embedder) -> None:
    assert embedder.missing is None
    assert embedder.model
    assert embedder.dimension == len(numbers(embedder.embed_query(BRIDGE)))
    assert embedder.most_tokens >= 256


def test_each_text_has_a_vector_of_unit_length_in_the_order_of_the_texts(embedder: Embedder) -> None:
    found = embedder.embed(TEXTS).vectors
    assert [len(numbers(vector)) for vector in found] == [embedder.dimension] * 3
    assert [cosine(vector, vector) for vector in found] == pytest.approx([1.0] * 3, abs=1e-5)
    assert embedder.embed(TEXTS[::-1]).vectors == found[::-1]


def test_a_text_has_the_same_vector_whatever_is_embedded_beside_it(embedder: Embedder) -> None:
    assert embedder.embed([BREAD]).vectors[0] == embedder.embed([BRIDGE * 20, BREAD, "x"]).vectors[1]


def test_a_query_is_nearest_to_the_text_with_its_words(embedder: Embedder) -> None:
    found = embedder.embed(TEXTS).vectors
    for text in TEXTS:
        asked = embedder.embed_query(text)
        assert max(TEXTS, key=lambda other: cosine(asked, found[TEXTS.index(other)])) == text


def test_no_texts_have_no_vectors(embedder: Embedder) -> None:
    assert embedder.embed([]).vectors == []


def test_what_it_took_is_counted(embedder: Embedder) -> None:
    assert embedder.embed([BRIDGE]).tokens > 0


def test_more_texts_than_a_request_carries_have_a_vector_each(embedder: Embedder) -> None:
    texts = [f"{BRIDGE} {number}" for number in range(TEXTS_PER_REQUEST + 1)]
    told: list[int] = []
    assert len(embedder.embed(texts, told.append).vectors) == len(texts)
    assert told == sorted(told)
    assert told[-1] == len(texts)


def test_what_progress_raises_ends_the_call_and_harms_no_other(embedder: Embedder) -> None:
    def lost(_: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        embedder.embed(TEXTS, lost)
    assert len(embedder.embed(TEXTS).vectors) == 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t ",
        "\0\x01\x02\x1b[31m\x7f\x9f",
        "half a pair: \ud800",
        "\N{ZERO WIDTH JOINER}\N{RIGHT-TO-LEFT OVERRIDE}\N{REPLACEMENT CHARACTER}",
        "漢字かな交じり文 ไทย हिन्दी العَرَبِيَّة",
        "\N{FAMILY}" * 100_000,
        "x" * 10_000_000,
        "two words " * 1_000_000,
        "[CLS] [SEP] [PAD] [MASK]",
    ],
    ids=["empty", "blank", "control", "surrogate", "marks", "scripts", "emoji", "line", "huge", "special"],
)
def test_whatever_the_text_there_is_a_usable_vector(embedder: Embedder, text: str) -> None:
    (vector,) = embedder.embed([text]).vectors
    assert cosine(vector, vector) == pytest.approx(1.0, abs=1e-5)
    assert len(embedder.embed_query(text)) == len(vector)


def test_threads_share_it(embedder: Embedder) -> None:
    alone = [embedder.embed([text]).vectors[0] for text in TEXTS]
    with ThreadPoolExecutor(6) as threads:
        together = threads.map(lambda text: embedder.embed([text]).vectors[0], TEXTS * 6)
        asked = threads.map(embedder.embed_query, TEXTS * 2)
        assert list(together) == alone * 6
        assert len(list(asked)) == 6


def test_no_library_of_the_model_is_loaded_into_nexus(embedder: Embedder) -> None:
    embedder.embed(TEXTS)
    assert not {"onnxruntime", "tokenizers"} & sys.modules.keys()


def test_off_is_no_model(tmp_path: Path) -> None:
    assert make_embedder(make_settings("sqlite://", tmp_path, embed="off")) is None
