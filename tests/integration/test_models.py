"""The model that Nexus makes, and folders with other ones: missing, damaged, made again, refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree

import pytest

from nexus.embed import installed, making
from nexus.embed.folder import FolderModel
from nexus.embed.installed import DIMENSION, FOLDER, MODEL, find_installed
from nexus.embed.local import LocalModel
from nexus.embed.making import NotMade, make_model
from nexus.errors import EmbeddingBadModel, EmbeddingNoModel, EmbeddingStopped
from nexus.upkeep.embedding_model import check_embedding_model
from nexus.upkeep.findings import CheckVerdict
from tests.kit.models import cosine, made_model
from tests.kit.settings import make_settings

SECONDS = 60.0
#: Pairs of sentences, and their cosine by the same graph before its numbers became small, measured once.
WITH_32_BITS = (
    ("A man is playing a guitar.", "Someone plays an instrument.", 0.667),
    ("How do I bake bread at home?", "Knead the dough and let it rise in a warm place.", 0.461),
    ("The cat sits on the mat.", "Interest rates were raised by the central bank.", -0.008),
)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place for models; it holds none."""
    monkeypatch.setattr(installed, "model_places", lambda: (tmp_path / "models",))
    return tmp_path / "models"


@pytest.fixture
def local() -> Iterator[LocalModel]:
    made = LocalModel(SECONDS)
    yield made
    made.close()


def put_model(places: Path) -> Path:
    source = made_model_of_this_machine()
    copytree(source, places / FOLDER)
    return places / FOLDER


def made_model_of_this_machine() -> Path:
    return Path(sys.prefix, "share", "nexus", "models", FOLDER)


def test_the_model_finds_what_it_found_with_32_bits(local: LocalModel) -> None:
    for one, other, whole in WITH_32_BITS:
        assert cosine(local.embed_query(one), local.embed_query(other)) == pytest.approx(whole, abs=0.02)


def test_without_the_model_the_embedder_says_what_to_run(places: Path, local: LocalModel) -> None:
    missing = local.missing
    assert missing is not None
    assert missing.why == "The model for search by meaning is not installed."
    assert missing.command is not None
    assert missing.command.endswith("models install")
    with pytest.raises(EmbeddingNoModel) as raised:
        local.embed(["x"])
    assert raised.value.transient
    assert not raised.value.counted
    assert "nexus models install" in str(raised.value)


def test_a_model_that_is_installed_meanwhile_is_used_without_a_restart(
    places: Path, local: LocalModel
) -> None:
    assert local.missing is not None
    put_model(places)
    assert local.missing is None
    assert len(local.embed_query("x")) == 4 * DIMENSION


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_damaged_model_is_not_used_until_it_is_made_again(
    places: Path, local: LocalModel, name: str
) -> None:
    folder = put_model(places)
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-1])
    with pytest.raises(EmbeddingNoModel):
        local.embed(["x"])
    missing = local.missing
    assert missing is not None
    assert missing.why == f"The model for search by meaning has changed: {name} is not what it was."
    (folder / name).write_bytes(whole)
    (folder / installed.MANIFEST).write_text((folder / installed.MANIFEST).read_text())
    assert local.missing is None
    assert len(local.embed(["x"]).vectors) == 1


def test_half_a_model_is_none(places: Path) -> None:
    folder = put_model(places)
    (folder / installed.MANIFEST).write_text("{")
    assert find_installed() is None


def test_a_closed_model_embeds_nothing(local: LocalModel) -> None:
    local.close()
    local.close()
    with pytest.raises(EmbeddingStopped):
        local.embed(["x"])


def write_packages(weights: bytes) -> Callable[[Path], None]:
    def get(target: Path) -> None:
        source = target / making.SOURCE
        source.mkdir(parents=True)
        for name in making.PINNED:
            (source / name).write_bytes(weights)

    return get


def test_weights_that_are_not_the_pinned_ones_are_refused(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "_get_packages", write_packages(b"other weights"))
    with pytest.raises(NotMade, match=r"model\.safetensors is not the file that Nexus knows"):
        make_model(lambda _: None)
    assert list(places.iterdir()) == []


def test_a_network_that_fails_leaves_the_old_model_and_nothing_else(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_model(places)
    monkeypatch.setattr(making, "REQUIREMENTS", places / "not-there.txt")
    with pytest.raises(NotMade, match="The weights can't be fetched"):
        make_model(lambda _: None)
    assert [path.name for path in places.iterdir()] == [FOLDER]
    assert find_installed() is not None


def test_a_folder_that_can_not_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(making, "place_to_install", lambda: tmp_path / "file" / "models")
    with pytest.raises(NotMade, match="can't be written"):
        make_model(lambda _: None)


def test_what_a_model_is_made_of_is_pinned_in_full() -> None:
    assert making.PINNED.keys() == {"model.safetensors", "tokenizer.json"}
    assert {len(digest) for digest in making.PINNED.values()} == {64}
    pinned = making.REQUIREMENTS.read_text()
    assert pinned.count("==") == len([line for line in pinned.splitlines() if not line.startswith(" ")])
    assert "--hash=sha256:" in pinned
    assert "://" not in pinned


def own_folder(tmp_path: Path, **files: object) -> Path:
    folder = tmp_path / "own"
    copytree(made_model().folder, folder)
    for name, said in files.items():
        (folder / f"{name}.json").write_text(json.dumps(said))
    return folder


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_folder_without_a_file_says_which(tmp_path: Path, name: str) -> None:
    folder = own_folder(tmp_path)
    (folder / name).unlink()
    model = FolderModel(folder, SECONDS)
    assert model.missing is not None
    assert name in model.missing.why
    with pytest.raises(EmbeddingBadModel) as raised:
        model.embed(["x"])
    assert not raised.value.transient


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_folder_with_another_kind_of_file_is_refused(tmp_path: Path, name: str) -> None:
    folder = own_folder(tmp_path)
    (folder / name).write_bytes(b"something else")
    with pytest.raises(EmbeddingBadModel, match="can't be loaded"):
        FolderModel(folder, SECONDS).embed(["x"])


def test_other_files_make_another_model(tmp_path: Path) -> None:
    folder = own_folder(tmp_path)
    first = FolderModel(folder, SECONDS).model
    assert FolderModel(folder, SECONDS).model == first
    tokenizer = folder / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text() + "\n")
    assert FolderModel(folder, SECONDS).model != first


def test_the_files_of_a_folder_say_how_long_a_text_may_be(tmp_path: Path) -> None:
    folder = own_folder(tmp_path, sentence_bert_config={"max_seq_length": 128})
    assert FolderModel(folder, SECONDS).most_tokens == 128
    for odd in (-1, "many", None, 10**9):
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": odd}))
        assert FolderModel(folder, SECONDS).most_tokens in {256, 512}
    (folder / "sentence_bert_config.json").write_text("[]")
    assert FolderModel(folder, SECONDS).most_tokens == 256


def test_what_a_folder_puts_before_queries_and_texts_is_put_there(tmp_path: Path, local: LocalModel) -> None:
    prompts = {"query": "query: ", "passage": "passage: "}
    own = FolderModel(own_folder(tmp_path, config_sentence_transformers={"prompts": prompts}), SECONDS)
    try:
        assert own.embed_query("bread") == local.embed_query("query: bread")
        assert own.embed(["bread"]).vectors == local.embed(["passage: bread"]).vectors
    finally:
        own.close()


def nexus(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nexus", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment or None)


def test_the_command_shows_the_model() -> None:
    shown = json.loads(nexus("models", "show", "--json").stdout)
    assert shown["model"] == MODEL
    assert shown["folder"] == str(made_model().folder)
    assert shown["bytes"] < 40_000_000


def test_a_model_that_is_there_is_not_made_again() -> None:
    before = made_model()
    ran = nexus("models", "install")
    assert ran.returncode == 0
    assert "is installed in" in ran.stdout
    assert made_model() == before


def test_the_doctor_says_what_to_do_about_a_missing_model(places: Path, tmp_path: Path) -> None:
    found = check_embedding_model(make_settings("", tmp_path, embed="local"))
    assert found.verdict is CheckVerdict.NOTE
    assert "found by their words alone" in found.says
    assert found.advice.endswith("models install")
    model = put_model(places)
    assert check_embedding_model(make_settings("", tmp_path, embed="local")).verdict is CheckVerdict.OK
    (model / "tokenizer.json").write_text("{}")
    found = check_embedding_model(make_settings("", tmp_path, embed="local"))
    assert found.verdict is CheckVerdict.PROBLEM
    assert "tokenizer.json is not what it was" in found.says
    assert found.advice.endswith("models install")


def test_the_doctor_misses_files_in_a_folder_that_was_chosen(tmp_path: Path) -> None:
    chosen = make_settings("", tmp_path, embed="folder", embed_folder=tmp_path / "empty")
    found = check_embedding_model(chosen)
    assert found.verdict is CheckVerdict.PROBLEM
    assert "has no model.onnx" in found.says
    assert "NEXUS_EMBED_FOLDER" in found.advice


def test_the_doctor_tries_a_model_in_a_folder_that_was_chosen(tmp_path: Path) -> None:
    own = tmp_path / "own"
    copytree(made_model().folder, own)
    chosen = make_settings("", tmp_path, embed="folder", embed_folder=own)
    assert check_embedding_model(chosen).verdict is CheckVerdict.OK
    (own / "tokenizer.json").write_text("{}")
    assert check_embedding_model(chosen).verdict is CheckVerdict.PROBLEM


@pytest.mark.parametrize(("chosen", "says"), [("off", "NEXUS_EMBED is off"), ("openai", "text-embedding-3")])
def test_the_doctor_is_content_with_what_needs_no_files(tmp_path: Path, chosen: str, says: str) -> None:
    found = check_embedding_model(make_settings("", tmp_path, embed=chosen))
    assert found.verdict is CheckVerdict.OK
    assert says in found.says
