"""`nexus doctor --security` says what settings and files leave open, and what to do about it."""

from __future__ import annotations

import ssl
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from nexus.fetch import exchange
from nexus.settings import Settings
from nexus.upkeep import advisories, security_settings
from nexus.upkeep.findings import CheckVerdict, Finding
from nexus.upkeep.standing_keys import check_standing_keys
from tests.kit.servers.scanner import scanning
from tests.kit.settings import make_settings

OK, NOTE, PROBLEM = CheckVerdict
STRONG = {
    "jwt_secret": "one-0123456789-abcdefghijklmnopqrstuvwxyz",
    "internal_secret": "two-0123456789-abcdefghijklmnopqrstuvwxyz",
    "session_secret": "three-0123456789-abcdefghijklmnopqrstuvwxyz",
}


def settings(folder: Path, **given: Any) -> Settings:
    return make_settings("", folder).model_copy(update={**STRONG, **given})


def found(findings: list[Finding], name: str) -> Finding:
    (one,) = [finding for finding in findings if finding.name == name]
    assert bool(one.advice) is (one.verdict is not OK)
    return one


@pytest.mark.parametrize(
    ("name", "given", "verdict"),
    [
        ("secrets.set", {}, OK),
        ("secrets.set", {"internal_secret": ""}, PROBLEM),
        ("secrets.set", {"jwt_secret": "", "jwks_url": "https://keys.example.com"}, OK),
        ("secrets.strength", {}, OK),
        ("secrets.strength", {"jwt_secret": "x1" * 15}, PROBLEM),
        ("secrets.strength", {"jwt_secret": "changeme" * 8}, PROBLEM),
        ("secrets.apart", {}, OK),
        ("secrets.apart", {"session_secret": STRONG["jwt_secret"]}, PROBLEM),
        ("secrets.published", {"jwks_url": "https://keys.example.com", "rsa_bits": 3072}, OK),
        ("secrets.published", {"jwks_url": "https://keys.example.com"}, NOTE),
        ("secrets.published", {"oidc_issuer": "https://idp.example.com"}, NOTE),
        ("secrets.published", {}, OK),
    ],
)
def test_secrets_are_set_hard_to_guess_and_apart(
    tmp_path: Path, name: str, given: dict[str, str], verdict: CheckVerdict
) -> None:
    told = found(security_settings.check_secrets(settings(tmp_path, **given)), name)
    assert told.verdict is verdict
    secret = {value for one, value in {**STRONG, **given}.items() if one in STRONG}
    assert not any(value and value in str(told) for value in secret)


def test_a_secret_in_the_environment_of_prod_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXUS_S3_SECRET_KEY", "a key that is not shown")
    for env, verdict in (("local", OK), ("prod", NOTE)):
        told = found(security_settings.check_secrets(settings(tmp_path, env=env)), "secrets.place")
        assert (told.verdict, "not shown" in str(told)) == (verdict, False)
    monkeypatch.delenv("NEXUS_S3_SECRET_KEY")
    told = found(security_settings.check_secrets(settings(tmp_path, env="prod")), "secrets.place")
    assert told.verdict is OK


@pytest.mark.parametrize(
    ("given", "services"),
    [
        ({}, ()),
        ({"database_url": "postgresql+psycopg://nexus:hush@db/nexus"}, ("PostgreSQL",)),
        ({"database_url": "postgresql+psycopg://nexus@db/nexus?sslcert=/c&sslkey=/k"}, ()),
        ({"queue": "celery", "redis_url": "rediss://:hush@queue/0"}, ("Redis",)),
        ({"queue": "celery", "redis_url": "rediss://queue/0?ssl_certfile=/c&ssl_keyfile=/k"}, ()),
        ({"storage": "s3", "s3_secret_key": "hush"}, ("S3",)),
        ({"storage": "s3"}, ()),
        ({"storage": "supabase", "llm_api_key": "hush"}, ("Supabase", "the model that drafts")),
        ({"oidc_client_secret": "hush"}, ("the identity provider",)),
        (
            {"embed_api_key": "a", "speech_api_key": "b"},
            ("the model that embeds", "the model that transcribes"),
        ),
    ],
    ids=str,
)
def test_keys_that_stay_the_same_are_noted_in_prod(
    tmp_path: Path, given: dict[str, str], services: tuple[str, ...]
) -> None:
    told = found(check_standing_keys(settings(tmp_path, env="prod", **given)), "secrets.standing")
    assert (told.verdict, told.examples) == (NOTE if services else OK, services)
    assert "hush" not in told.says
    local = found(check_standing_keys(settings(tmp_path, env="local", **given)), "secrets.standing")
    assert local.verdict is OK


def test_the_model_that_transcribes_is_checked_as_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_line = settings(tmp_path, speech_base_url="http://speech.example/v1")
    assert "NEXUS_SPEECH_BASE_URL" in found(security_settings.check_tls(open_line), "tls.services").says
    monkeypatch.setenv("NEXUS_SPEECH_API_KEY", "x")
    told = found(security_settings.check_secrets(settings(tmp_path, env="prod")), "secrets.place")
    assert "NEXUS_SPEECH_API_KEY" in told.says


def test_a_secret_of_a_folder_that_others_can_open_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security_settings, "_lets_through", lambda *_: True)
    monkeypatch.setenv("NEXUS_SECRETS_DIR", str(tmp_path))
    kept = tmp_path / "nexus_jwt_secret"
    kept.write_text("x")
    for mode, verdict in ((0o400, OK), (0o440, NOTE), (0o444, PROBLEM)):
        kept.chmod(mode)
        checked = security_settings.check_permissions(settings(tmp_path / "data"))
        assert found(checked, "permissions.credentials").verdict is verdict


def test_the_doctor_asks_whether_the_malware_scanner_is_there(tmp_path: Path) -> None:
    def verdict(**given: Any) -> CheckVerdict:
        return found(security_settings.check_files(settings(tmp_path, **given)), "files.scanner").verdict

    assert (verdict(), verdict(env="prod")) == (OK, NOTE)
    with scanning() as scanner:
        assert verdict(env="prod", scanner=scanner.address) is OK
    assert verdict(scanner=scanner.address) is PROBLEM


@pytest.mark.parametrize(
    ("name", "given", "verdict"),
    [
        ("tls.pages", {}, OK),
        ("tls.pages", {"public_url": "https://nexus.example.com", "env": "prod", "host": "0.0.0.0"}, OK),
        ("tls.pages", {"public_url": "http://nexus.example.com"}, PROBLEM),
        ("tls.pages", {"public_url": "http://localhost:8000"}, OK),
        ("tls.pages", {"host": "0.0.0.0"}, PROBLEM),
        ("tls.pages", {"env": "prod"}, PROBLEM),
        ("tls.keys", {"jwks_url": "https://keys.example.com/"}, OK),
        ("tls.keys", {"jwks_url": "http://keys.example.com/"}, PROBLEM),
        ("tls.keys", {"oidc_issuer": "HTTP://idp.example.com"}, PROBLEM),
        ("tls.keys", {"oidc_issuer": "http://127.0.0.1:9000"}, OK),
        ("tls.services", {}, OK),
        ("tls.services", {"s3_endpoint_url": "http://store.example.com"}, NOTE),
        ("tls.services", {"s3_endpoint_url": "http://[::1]:8333"}, OK),
        ("tls.services", {"llm_base_url": "http://10.0.0.7/v1"}, NOTE),
        ("tls.services", {"redis_url": "redis://cache.example.com/0"}, OK),
        ("tls.services", {"redis_url": "redis://cache.example.com/0", "queue": "celery"}, NOTE),
        ("tls.services", {"redis_url": "rediss://cache.example.com/0", "queue": "celery"}, OK),
        ("tls.services", {"database_url": "postgresql://n@db.example.com/n"}, NOTE),
        ("tls.services", {"database_url": "postgresql://n@db.example.com/n?sslmode=require"}, NOTE),
        ("tls.services", {"database_url": "postgresql://n@db.example.com/n?sslmode=verify-full"}, OK),
        ("tls.services", {"database_url": "postgresql://n@127.0.0.1/n"}, OK),
        ("tls.fetches", {}, OK),
    ],
)
def test_what_crosses_a_network_in_the_open_is_told(
    tmp_path: Path, name: str, given: dict[str, str], verdict: CheckVerdict
) -> None:
    assert found(security_settings.check_tls(settings(tmp_path, **given)), name).verdict is verdict


def test_fetches_without_trusted_roots_are_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "make_tls_context", lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    assert found(security_settings.check_tls(settings(tmp_path)), "tls.fetches").verdict is PROBLEM


@pytest.mark.parametrize(
    ("name", "given", "verdict"),
    [
        ("hosts.names", {}, OK),
        ("hosts.names", {"hosts": ("nexus.example.com", "*.example.com")}, OK),
        ("hosts.names", {"hosts": ("*",)}, PROBLEM),
        ("hosts.names", {"hosts": ("*.com",)}, PROBLEM),
        ("hosts.listens", {}, OK),
        ("hosts.listens", {"host": "::"}, NOTE),
        ("hosts.proxies", {}, OK),
        ("hosts.proxies", {"proxies": ("10.0.0.0/8", "fd00::/32")}, OK),
        ("hosts.proxies", {"proxies": ("0.0.0.0/0",)}, PROBLEM),
        ("hosts.proxies", {"proxies": ("::/0",)}, PROBLEM),
        ("hosts.fetches", {}, OK),
        ("hosts.fetches", {"fetch_allow": ("10.0.0.7:80",)}, NOTE),
    ],
)
def test_who_can_call_and_who_is_believed_is_told(
    tmp_path: Path, name: str, given: dict[str, Any], verdict: CheckVerdict
) -> None:
    assert found(security_settings.check_hosts(settings(tmp_path, **given)), name).verdict is verdict


@pytest.mark.parametrize(
    ("name", "file", "mode", "verdict"),
    [
        ("permissions.secrets", "secrets.json", 0o600, OK),
        ("permissions.secrets", "secrets.json", 0o640, PROBLEM),
        ("permissions.settings", ".env", 0o600, OK),
        ("permissions.settings", ".env", 0o640, NOTE),
        ("permissions.settings", ".env", 0o604, PROBLEM),
        ("permissions.data", "", 0o711, PROBLEM),
        ("permissions.database", "nexus.sqlite3", 0o600, OK),
        ("permissions.database", "nexus.sqlite3", 0o644, PROBLEM),
    ],
)
def test_files_that_other_users_can_open_are_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    file: str,
    mode: int,
    verdict: CheckVerdict,
) -> None:
    monkeypatch.delenv("NEXUS_ENV_FILE", raising=False)
    folder = tmp_path / "data"
    folder.mkdir()
    if file:
        (folder / file).touch()
    (folder / file).chmod(mode)
    given = settings(folder, database_url="")
    # The folders of tests are private.
    monkeypatch.setattr(security_settings, "_lets_through", lambda path, way: True)
    told = found(security_settings.check_permissions(given), name)
    assert told.verdict is verdict
    if verdict is not OK:
        assert f"chmod {'700' if not file else '600'} {folder / file}".rstrip("/") in told.advice


def test_a_private_folder_above_protects_what_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    (folder / "nexus.sqlite3").touch(mode=0o644)
    findings = security_settings.check_permissions(settings(folder, database_url=""))
    assert found(findings, "permissions.database").verdict is OK
    assert found(findings, "permissions.data").verdict is OK


def test_a_python_without_security_fixes_is_a_problem() -> None:
    assert security_settings._python((3, 11), date(2027, 1, 1)).verdict is OK
    assert security_settings._python((3, 11), date(2028, 1, 1)).verdict is PROBLEM
    assert security_settings._python((3, 99), date(2099, 1, 1)).verdict is OK


def test_an_installed_package_with_a_known_flaw_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found(security_settings.check_versions(settings(tmp_path)), "versions.packages").verdict is OK
    monkeypatch.setattr(advisories, "installed", lambda: {("PyJWT", "2.10.0")})
    told = found(security_settings.check_versions(settings(tmp_path)), "versions.packages")
    assert told.verdict is PROBLEM
    assert any("CVE-2024-53861" in line for line in told.examples)
