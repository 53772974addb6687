"""Settings: documented, read from the right places, and refused if they are invalid."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import ValidationError

from nexus import settings
from nexus.settings import SECRETS, BadSettings, Settings

GIVEN = {"jwt_secret": "a", "internal_secret": "b", "session_secret": "c"}


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No environment variable and no .env file of this machine."""
    for name in Settings.model_fields:
        monkeypatch.delenv(f"NEXUS_{name.upper()}", raising=False)
    monkeypatch.delenv("CELERY_ALWAYS_EAGER", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_described_in_a_sentence(name: str) -> None:
    described = Settings.model_fields[name].description or ""
    assert described.endswith(".")
    assert len(described) > 10


def test_environment_variables_override_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".env").write_text("NEXUS_PORT=9000\nNEXUS_HOST=0.0.0.0\nNEXUS_UNKNOWN=1\n")
    monkeypatch.setenv("NEXUS_PORT", "9001")
    assert (Settings().port, Settings().host) == (9001, "0.0.0.0")


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXUS_PORT", "")
    assert Settings().port == 8000


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a, b,,c ", ("a", "b", "c")), ("", ()), (" , ", ()), ("one.module", ("one.module",))],
)
def test_lists_are_separated_by_commas(
    monkeypatch: pytest.MonkeyPatch, text: str, expected: tuple[str, ...]
) -> None:
    monkeypatch.setenv("NEXUS_PLUGINS", text)
    assert Settings().plugins == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", "65536"),
        ("worker_threads", "0"),
        ("queue", "rabbit"),
        ("database_url", "mysql://x"),
        ("env", "dev"),
    ],
)
def test_invalid_settings_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"NEXUS_{name.upper()}", value)
    with pytest.raises(ValidationError) as refused:
        Settings()
    assert refused.value.errors()[0]["loc"] == (name,)


@pytest.mark.parametrize(
    "url", ["sqlite:////tmp/x", "postgresql://h/n", "postgresql+psycopg://h/n", "postgres://h/n"]
)
def test_both_databases_are_accepted(url: str) -> None:
    assert Settings(database_url=url).database == url


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://example.com", "http://", "http://[::1", "/v1"])
def test_the_address_of_a_model_must_be_a_web_address(url: str) -> None:
    with pytest.raises(ValidationError):
        Settings(llm_base_url=url)


@pytest.mark.parametrize("name", ["NEXUS_LLM_API_KEY", "OPENAI_API_KEY"])
def test_the_key_of_a_model_can_be_set_by_two_names(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "key")
    assert Settings().llm_api_key == "key"


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        Settings().port = 1  # type: ignore[misc]


@pytest.mark.parametrize("missing", SECRETS)
def test_prod_names_the_secret_that_is_missing(missing: str) -> None:
    given = {name: value for name, value in GIVEN.items() if name != missing}
    with pytest.raises(ValidationError, match=f"NEXUS_{missing.upper()}"):
        Settings(env="prod", **given)  # type: ignore[arg-type]


def test_prod_accepts_published_keys_instead_of_a_secret() -> None:
    given = {**GIVEN, "jwt_secret": "", "jwks_url": "https://keys.example"}
    assert Settings(env="prod", **given).env == "prod"  # type: ignore[arg-type]


def test_prod_generates_no_secrets(tmp_path: Path) -> None:
    chosen = settings.load(tmp_path / "data", env="prod", **GIVEN)
    assert chosen.local_owner is None
    assert not (tmp_path / "data").exists()


def test_local_secrets_are_generated_once_and_are_private(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: settings.load(tmp_path / "data"), range(8)))
    assert len({(one.jwt_secret, one.local_owner) for one in made}) == 1
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["secrets.json"]
    assert stat.S_IMODE((tmp_path / "data" / "secrets.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def test_secrets_that_are_set_override_stored_ones(tmp_path: Path) -> None:
    first = settings.load(tmp_path)
    second = settings.load(tmp_path, jwt_secret="mine")
    assert (second.jwt_secret, second.internal_secret) == ("mine", first.internal_secret)


@pytest.mark.parametrize(
    "kept", ["", "[]", "null", json.dumps(GIVEN), json.dumps({**GIVEN, "local_owner": "me"})]
)
def test_a_damaged_file_of_secrets_is_reported(tmp_path: Path, kept: str) -> None:
    (tmp_path / "secrets.json").write_text(kept)
    with pytest.raises(BadSettings, match="Restore it"):
        settings.load(tmp_path)


def test_the_database_is_in_the_data_folder(tmp_path: Path) -> None:
    assert Settings(data_dir=tmp_path).database == f"sqlite:///{tmp_path}/nexus.sqlite3"
    assert Settings(data_dir=Path("~/x")).data_dir == Path.home() / "x"


@pytest.mark.parametrize(
    ("env", "log_format", "expected"),
    [("prod", "", True), ("local", "", False), ("prod", "console", False), ("local", "json", True)],
)
def test_logs_are_json_in_prod(env: str, log_format: str, expected: bool) -> None:
    assert Settings(env=env, log_format=log_format, **GIVEN).json_logs is expected  # type: ignore[arg-type]
