"""Settings: documented, read from the right places, and refused if they are invalid."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import ValidationError

from nexus import settings
from nexus.command_line import again, sign_in_command
from nexus.settings import SECRETS, BadSettings, Settings

GIVEN = {"jwt_secret": "a" * 32, "internal_secret": "b" * 32, "session_secret": "c" * 32}


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No environment variable, no data folder and no .env file of this machine."""
    for name in (*Settings.model_fields, "env_file", "secrets_dir"):
        monkeypatch.delenv(f"NEXUS_{name.upper()}", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CELERY_ALWAYS_EAGER", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_described_in_a_sentence(name: str) -> None:
    described = Settings.model_fields[name].description or ""
    assert described.endswith(".")
    assert len(described) > 10


def test_environment_variables_override_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("NEXUS_PORT=9000\nNEXUS_HOST=0.0.0.0\nNEXUS_UNKNOWN=1\n")
    monkeypatch.setenv("NEXUS_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("NEXUS_PORT", "9001")
    assert (Settings().port, Settings().host) == (9001, "0.0.0.0")


def test_the_env_file_of_the_current_folder_is_never_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A folder that somebody else has filled could send the model's key and the articles elsewhere."""
    hostile = tmp_path / "downloads"
    hostile.mkdir()
    monkeypatch.chdir(hostile)
    (hostile / ".env").write_text("NEXUS_LLM_BASE_URL=https://evil.example\nNEXUS_PLUGINS=evil\n")
    for chosen in (Settings(), Settings(data_dir=tmp_path / "data"), settings.load(tmp_path / "data")):
        assert (chosen.llm_base_url, chosen.plugins) == ("", ())


def test_the_env_file_is_that_of_the_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """However the folder is chosen."""
    for port, folder in enumerate(("home/nexus", "variable", "argument"), 9000):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / ".env").write_text(f"NEXUS_PORT={port}\n")
    assert Settings().port == 9000
    monkeypatch.setenv("NEXUS_DATA_DIR", str(tmp_path / "variable"))
    assert Settings().port == 9001
    assert settings.load(tmp_path / "argument").port == 9002


def test_another_env_file_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "home" / "nexus").mkdir(parents=True)
    (tmp_path / "home" / "nexus" / ".env").write_text("NEXUS_PORT=9000\n")
    (tmp_path / "production.env").write_text("NEXUS_PORT=9001\n")
    monkeypatch.setenv("NEXUS_ENV_FILE", str(tmp_path / "production.env"))
    assert Settings().port == 9001


@pytest.mark.parametrize("name", ["missing.env", "."])
def test_a_named_env_file_that_can_not_be_read_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setenv("NEXUS_ENV_FILE", str(tmp_path / name))
    with pytest.raises(BadSettings, match="NEXUS_ENV_FILE"):
        Settings()


@pytest.mark.parametrize("names", ["NEXUS_SECRETS_DIR", "CREDENTIALS_DIRECTORY"])
def test_secrets_come_from_a_folder_that_a_manager_of_secrets_fills(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, names: str
) -> None:
    monkeypatch.setenv(names, str(tmp_path))
    monkeypatch.setenv("NEXUS_SESSION_SECRET", "of the environment")
    for name in ("NEXUS_JWT_SECRET", "nexus_internal_secret", "nexus_session_secret", "NEXUS_LLM_API_KEY"):
        (tmp_path / name).write_text(f"{name.lower()} of the folder\n")
    chosen = Settings()
    assert chosen.jwt_secret == "nexus_jwt_secret of the folder"
    assert chosen.internal_secret == "nexus_internal_secret of the folder"
    assert chosen.llm_api_key == "nexus_llm_api_key of the folder"
    assert chosen.session_secret == "of the environment"


def test_a_named_folder_of_secrets_that_can_not_be_read_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a file").touch()
    for name in ("nothing", "a file"):
        monkeypatch.setenv("NEXUS_SECRETS_DIR", str(tmp_path / name))
        with pytest.raises(BadSettings, match="NEXUS_SECRETS_DIR"):
            Settings()


@pytest.mark.parametrize(
    ("address", "is_one"), [("127.0.0.1:3310", True), ("/run/clamav/clamd.ctl", True), ("clamd", False)]
)
def test_a_scanner_has_an_address_or_a_socket(address: str, is_one: bool) -> None:
    if is_one:
        assert Settings(scanner=address).scanner == address
    else:
        with pytest.raises(ValueError, match="host:port"):
            Settings(scanner=address)


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


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("short", ["x", "x" * 31, "ü" * 15])
def test_prod_refuses_a_secret_of_less_than_32_bytes(name: str, short: str) -> None:
    with pytest.raises(ValidationError, match=f"32 bytes.*NEXUS_{name.upper()}") as refused:
        Settings(env="prod", **{**GIVEN, name: short})  # type: ignore[arg-type]
    assert short not in str(refused.value.errors()[0]["msg"]) or len(short) == 1
    assert Settings(env="prod", **{**GIVEN, name: "ü" * 16}).env == "prod"  # type: ignore[arg-type]
    assert Settings(env="local", **{**GIVEN, name: short}).env == "local"  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["jwks_url", "jwt_issuer", "oidc_issuer"])
@pytest.mark.parametrize("scheme", ["http", "HTTP"])
def test_prod_trusts_nobody_over_plain_http(name: str, scheme: str) -> None:
    given = {**GIVEN, "oidc_issuer": "https://id.example.com", "oidc_client_id": "nexus"}
    with pytest.raises(ValidationError, match=f"https://.*NEXUS_{name.upper()}"):
        Settings(env="prod", **{**given, name: f"{scheme}://id.example.com"})  # type: ignore[arg-type]
    assert Settings(env="prod", **{**given, name: "https://id.example.com"}).env == "prod"  # type: ignore[arg-type]
    assert Settings(env="local", **{**given, name: "http://127.0.0.1:9400"}).env == "local"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"oidc_issuer": "https://id.example.com"}, "NEXUS_OIDC_CLIENT_ID"),
        ({"oidc_client_id": "nexus"}, "NEXUS_OIDC_ISSUER"),
        (
            {"oidc_issuer": "https://id.example.com", "oidc_client_id": "nexus", "oidc_scopes": "email"},
            "openid",
        ),
    ],
)
def test_half_an_identity_provider_is_refused(given: dict[str, str], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        Settings(**given)  # type: ignore[arg-type]


def test_a_provider_is_called_by_its_host_unless_it_has_a_name() -> None:
    given = {"oidc_issuer": "https://id.example.com/realms/team", "oidc_client_id": "nexus"}
    assert Settings(**given).oidc_shown_name == "id.example.com"  # type: ignore[arg-type]
    assert Settings(**given, oidc_name="Our team").oidc_shown_name == "Our team"  # type: ignore[arg-type]


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


def test_the_sign_in_command_needs_no_variable_of_the_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is typed in another terminal; what a command says to do next is typed in its own."""
    monkeypatch.setenv("NEXUS_PORT", "8001")
    monkeypatch.setenv("NEXUS_DATA_DIR", str(tmp_path))
    chosen = Settings()
    assert sign_in_command(chosen, 8001).endswith(f" token --link --port 8001 --data-dir {tmp_path}")
    assert again(chosen, "retry").endswith(" retry")


def test_languages_are_a_list_of_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().languages == ("en",)
    monkeypatch.setenv("NEXUS_LANGUAGES", "pt-BR, en")
    assert Settings().languages == ("pt-BR", "en")
    for wrong in ("english", "en,", "en;de", "<b>"):
        monkeypatch.setenv("NEXUS_LANGUAGES", wrong)
        with pytest.raises(ValidationError, match="not the code of a language"):
            Settings()
