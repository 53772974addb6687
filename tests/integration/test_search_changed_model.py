"""After a change of the model, the vectors of the earlier one are searched until those of the new one are whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast
from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.embed import Embedder
from nexus.embed.earlier import EarlierModels
from nexus.embed.installed import MODEL
from nexus.embed.local import LocalModel
from nexus.embed.openai import OpenAiModel
from nexus.errors import EmbeddingCrashed
from nexus.media.searching.finding import Asked, search_items
from nexus.media.searching.similar import more_like
from nexus.media.searching.vectors import FLOAT_BYTES, keep_sets
from nexus.media.workbench import Tools
from nexus.search.codes import SignCodes
from tests.kit.clock import SetClock
from tests.kit.embedding import CountingModel, embed_item, index_item, with_model
from tests.kit.finding import publish
from tests.kit.settings import make_settings

#: Has no word of any text, but their letters.
QUESTION = "nrets al"


class Known(EarlierModels):
    """Of the earlier models, knows this one."""

    def __init__(self, model: CountingModel | None) -> None:
        self.model = model

    def find(self, model: str) -> Embedder | None:
        return cast(Embedder, self.model) if self.model and self.model.model == model else None


@pytest.fixture
def user() -> UUID:
    return uuid4()


@pytest.fixture
def old() -> CountingModel:
    return CountingModel("letters/1")


@pytest.fixture
def items(app: App, user: UUID, old: CountingModel, clock: SetClock) -> list[UUID]:
    """Ready, by the old model, whose set is whole."""
    found = [publish(app, user, f"Lanterns {word}.", title=None) for word in ("glow", "sway", "rust")]
    for media_id in found:
        embed_item(with_model(app, old), media_id)
    keep_sets(app.sessions, old.model)
    clock.forward(seconds=1)
    return found


def changed(app: App, earlier: CountingModel | None) -> Tools:
    return replace(with_model(app, CountingModel("letters/2")), earlier=Known(earlier))


def by_meaning(tools: Tools, user: UUID) -> int:
    found = search_items(tools, user, Asked(QUESTION))
    assert found.by_meaning
    return len(found.items)


def test_everything_is_found_by_meaning_while_another_model_takes_over(
    app: App, user: UUID, items: list[UUID], old: CountingModel, clock: SetClock
) -> None:
    tools = changed(app, old)
    keep_sets(app.sessions, "letters/2")
    clock.forward(seconds=1)
    for media_id in items:
        assert by_meaning(tools, user) == 3
        assert more_like(tools, user, media_id).by_meaning
        assert index_item(tools, media_id) == ["indexed"]
    keep_sets(app.sessions, "letters/2")
    old.asked.clear()
    assert by_meaning(tools, user) == 3
    assert old.asked == [], "the new vectors are whole"
    keep_sets(app.sessions, "letters/2")
    assert by_meaning(tools, user) == 3


@pytest.mark.parametrize("is_known", [True, False])
def test_an_earlier_model_that_can_not_be_asked_leaves_what_the_new_one_has_made(
    app: App, user: UUID, items: list[UUID], old: CountingModel, clock: SetClock, is_known: bool
) -> None:
    old.errors = [EmbeddingCrashed()] * 9
    tools = changed(app, old if is_known else None)
    keep_sets(app.sessions, "letters/2")
    clock.forward(seconds=1)
    assert index_item(tools, items[0]) == ["indexed"]
    found = search_items(tools, user, Asked(QUESTION))
    assert [one.view.row.id for one in found.items] == items[:1]


def test_codes_of_a_model_that_is_gone_make_room_for_those_of_the_next(
    app: App, user: UUID, items: list[UUID], old: CountingModel, clock: SetClock
) -> None:
    one_set = SignCodes(1 << 20)
    with app.sessions.read() as session:
        one_set.refresh(session, old.model, old.dimension * FLOAT_BYTES)
    tools = replace(changed(app, old), codes=SignCodes(one_set.memory))
    keep_sets(app.sessions, "letters/2")
    clock.forward(seconds=1)
    assert by_meaning(tools, user) == 3
    for media_id in items:
        index_item(tools, media_id)
    for _ in range(2):
        keep_sets(app.sessions, "letters/2")
        search_items(tools, user, Asked(QUESTION))
    assert by_meaning(tools, user) == 3
    assert (tools.codes.held("letters/1"), tools.codes.held("letters/2")) == (0, one_set.held("letters/1"))


def test_the_settings_say_which_earlier_models_can_be_asked(tmp_path: Path) -> None:
    url = "sqlite://"
    server = EarlierModels(
        make_settings(url, tmp_path, embed="openai", embed_base_url="http://127.0.0.1:9/v1")
    )
    found = server.find("an older one")
    assert isinstance(found, OpenAiModel)
    assert found.model == "an older one"
    assert server.find("an older one") is found
    assert isinstance(server.find(MODEL), LocalModel)
    left = EarlierModels(make_settings(url, tmp_path, embed="local", embed_base_url="http://127.0.0.1:9/v1"))
    assert left.find("an older one") is None, "nothing is sent to a server that was given up"
    server.close()
    left.close()
