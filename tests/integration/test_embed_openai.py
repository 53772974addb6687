"""Vectors from a server: whatever it answers, there are usable vectors in time, or an error that says what to do."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from nexus.embed import openai as module
from nexus.embed.openai import OpenAiModel
from nexus.errors import (
    EmbeddingFailed,
    EmbeddingKeyRefused,
    EmbeddingNoCredit,
    EmbeddingRateLimited,
    EmbeddingRefused,
    EmbeddingSlow,
    EmbeddingUnreachable,
    EmbeddingUnusable,
)
from tests.kit.models import embeds, numbers, sent
from tests.kit.servers.openai_api import Model, Step, answers, drips, drops, fails, hangs, model

KEY = "sk-secret-of-the-tests"
SECONDS = 45.0
NAN, INFINITY = float("nan"), float("inf")


@pytest.fixture
def server() -> Iterator[Model]:
    with model() as running:
        yield running


def asking(server: Model, *steps: Step, seconds: float = SECONDS) -> OpenAiModel:
    server.will(*steps)
    return OpenAiModel(server.url, KEY, "test-model", seconds)


def packed(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def listed(*vectors: list[float], order: list[int] | None = None) -> Step:
    """Vectors as lists of numbers, which servers send that know no base64."""
    places = order or list(range(len(vectors)))
    return answers(
        200, {"data": [{"index": at, "embedding": one} for at, one in zip(places, vectors, strict=True)]}
    )


def raw(body: str) -> Step:
    return answers(200, body)


def test_the_request_is_what_the_api_expects(server: Model) -> None:
    asking(server, embeds).embed(["one", "two"])
    (asked,) = server.asked
    assert asked.path == "/v1/embeddings"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {"model": "test-model", "input": ["one", "two"], "encoding_format": "base64"}


def test_a_server_without_a_key_is_sent_none(server: Model) -> None:
    server.will(embeds)
    OpenAiModel(server.url, " ", "m", SECONDS).embed_query("x")
    assert "authorization" not in server.asked[0].headers


def test_numbers_are_as_good_as_base64_and_are_made_to_have_unit_length(server: Model) -> None:
    embedder = asking(server, listed([3.0, 4.0], [0.0, -2.0]))
    found = [numbers(vector) for vector in embedder.embed(["a", "b"]).vectors]
    assert found[0] == pytest.approx((0.6, 0.8))
    assert found[1] == (0.0, -1.0)
    assert embedder.dimension == 2


def test_vectors_belong_to_the_text_whose_number_they_have(server: Model) -> None:
    found = asking(server, listed([0.0, 1.0], [1.0, 0.0], order=[1, 0])).embed(["a", "b"])
    assert found.vectors == [packed(1.0, 0.0), packed(0.0, 1.0)]


def test_what_the_server_counts_is_what_it_took(server: Model) -> None:
    assert asking(server, sent([packed(1.0)])).embed(["a"]).tokens == 7


def test_a_server_that_counts_nothing_is_estimated(server: Model) -> None:
    assert asking(server, listed([1.0])).embed(["a" * 400]).tokens == 101


def test_many_texts_go_in_requests_of_a_bounded_size(server: Model) -> None:
    asking(server, embeds, embeds, embeds).embed(["x"] * 70)
    assert [len(asked.body["input"]) for asked in server.asked] == [32, 32, 6]


def test_what_was_used_before_a_failure_is_counted(server: Model) -> None:
    with pytest.raises(EmbeddingUnreachable) as raised:
        asking(server, embeds, fails(500)).embed(["x"] * 40)
    assert raised.value.tokens_used == 7


@pytest.mark.parametrize(
    ("step", "error", "transient"),
    [
        (fails(429), EmbeddingRateLimited, True),
        (fails(429, "insufficient_quota"), EmbeddingNoCredit, False),
        (fails(402), EmbeddingNoCredit, False),
        (fails(401), EmbeddingKeyRefused, False),
        (fails(403), EmbeddingKeyRefused, False),
        (fails(400), EmbeddingRefused, False),
        (fails(404, "model_not_found"), EmbeddingRefused, False),
        (fails(408), EmbeddingUnreachable, True),
        (fails(500), EmbeddingUnreachable, True),
        (fails(503), EmbeddingUnreachable, True),
        (answers(502, "<html>Bad gateway"), EmbeddingUnreachable, True),
        (answers(302, "", Location="http://127.0.0.1:9/"), EmbeddingRefused, False),
        (drops, EmbeddingUnreachable, True),
        (raw("<html>"), EmbeddingUnusable, False),
        (raw(""), EmbeddingUnusable, False),
        (raw("{}"), EmbeddingUnusable, False),
        (raw('{"data": null}'), EmbeddingUnusable, False),
        (raw("[" * 100_000), EmbeddingUnusable, False),
        (listed(), EmbeddingUnusable, False),
        (listed([1.0]), EmbeddingUnusable, False),
        (listed([1.0], [1.0], [1.0]), EmbeddingUnusable, False),
        (listed([1.0], [1.0], order=[1, 1]), EmbeddingUnusable, False),
        (listed([1.0], [1.0], order=[0, -1]), EmbeddingUnusable, False),
        (listed([1.0], [1.0, 0.0]), EmbeddingUnusable, False),
        (listed([1.0], []), EmbeddingUnusable, False),
        (listed([1.0], [0.0]), EmbeddingUnusable, False),
        (listed([1.0], [NAN]), EmbeddingUnusable, False),
        (listed([1.0], [1e300]), EmbeddingUnusable, False),
        (sent([packed(1.0), packed(NAN)]), EmbeddingUnusable, False),
        (sent([packed(1.0), packed(INFINITY)]), EmbeddingUnusable, False),
        (sent([packed(1.0), b"abc"]), EmbeddingUnusable, False),
        (raw('{"data": [{"index": 0, "embedding": "%%%"}]}'), EmbeddingUnusable, False),
    ],
)
def test_every_bad_answer_has_its_error(
    server: Model, step: Step, error: type[EmbeddingFailed], transient: bool
) -> None:
    with pytest.raises(error) as raised:
        asking(server, step).embed(["one", "two"])
    assert type(raised.value) is error
    assert raised.value.transient is transient


@pytest.mark.parametrize("status", [429, 503])
def test_the_server_says_when_to_come_back(server: Model, status: int) -> None:
    with pytest.raises(EmbeddingFailed) as raised:
        asking(server, fails(status, Retry_After="17")).embed(["x"])
    assert raised.value.retry_after == 17.0


@pytest.mark.parametrize("step", [hangs, drips])
def test_a_slow_server_is_given_up_in_time(server: Model, step: Step) -> None:
    with pytest.raises(EmbeddingSlow) as raised:
        asking(server, step, seconds=0.3).embed(["x"])
    assert raised.value.transient


def test_an_answer_without_end_is_given_up(server: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    with pytest.raises(EmbeddingUnusable, match="does not end"):
        asking(server, drips).embed(["x"])


def test_another_dimension_than_before_is_an_error_that_says_so(server: Model) -> None:
    embedder = asking(server, listed([1.0, 0.0]), listed([1.0, 0.0, 0.0]), listed([0.0, 1.0]))
    embedder.embed(["x"])
    with pytest.raises(EmbeddingUnusable, match="have 3 numbers instead of 2"):
        embedder.embed(["x"])
    assert embedder.embed(["x"]).vectors == [packed(0.0, 1.0)]


def test_nobody_at_the_address_may_pass() -> None:
    with pytest.raises(EmbeddingUnreachable) as raised:
        OpenAiModel("http://127.0.0.1:9/v1", KEY, "m", SECONDS).embed(["x"])
    assert raised.value.transient


def test_a_key_that_can_not_be_sent_is_refused(server: Model) -> None:
    with pytest.raises(EmbeddingKeyRefused):
        OpenAiModel(server.url, "schlüssel…", "m", SECONDS).embed(["x"])
    assert not server.asked


@pytest.mark.parametrize(("text", "goes"), [("", "-"), (" \n", "-"), ("half \ud800", "half ?")])
def test_what_servers_refuse_is_replaced(server: Model, text: str, goes: str) -> None:
    asking(server, embeds).embed([text])
    assert server.asked[0].body["input"] == [goes]


def test_a_huge_text_is_cut_before_it_is_sent(server: Model) -> None:
    asking(server, embeds).embed(["x" * 10_000_000])
    assert len(server.asked[0].body["input"][0]) == 2048


def test_what_the_server_says_is_never_shown(server: Model) -> None:
    said: dict[str, Any] = {"message": f"Incorrect API key {KEY} for the text: my diary"}
    with pytest.raises(EmbeddingFailed) as raised:
        asking(server, fails(401, **said)).embed(["my diary"])
    assert KEY not in str(raised.value)
    assert "diary" not in str(raised.value)
