"""What settings and files say about the security of a Nexus: secrets, TLS, hosts, permissions, versions."""

from __future__ import annotations

import os
import platform
import ssl
import stat
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy import make_url

import nexus
from nexus.scan import Scanner, ScannerAway
from nexus.settings import SECRETS, Settings, env_file, secrets_folder
from nexus.settings.checks import SECRET_BYTES
from nexus.upkeep.findings import CheckVerdict, Finding

#: A secret with fewer different characters is a word or a repetition.
DIFFERENT = 8
#: Settings that open something to anybody who knows them.
EVERY_SECRET = (
    *SECRETS,
    "oidc_client_secret",
    "s3_secret_key",
    "supabase_service_key",
    "llm_api_key",
    "embed_api_key",
    "speech_api_key",
)
#: The bits of an RSA key that is as hard to break as everything else here.
LONG_ENOUGH = 3072
SCANNER_SECONDS = 5.0
NEW_ONE = "Make one with: openssl rand -base64 32"
#: Loopback, whatever a machine calls it.
HERE = {"localhost", "localhost.localdomain", ""}
EVERYWHERE = {"0.0.0.0", "::"}  # noqa: S104
#: Wider networks than these are not a proxy's, but the world's or everybody's at home.
WIDEST = {4: 8, 6: 32}
#: What PostgreSQL's clients may be told of TLS, and which of it means that there is some, with the right server.
VERIFIED = {"verify-full", "verify-ca"}
OTHERS = stat.S_IRWXO
GROUP = stat.S_IRWXG
#: When each Python gets its last security fix: its release schedule (PEP 664, 693, 719, 745).
LAST_FIXES = {
    (3, 11): date(2027, 10, 31),
    (3, 12): date(2028, 10, 31),
    (3, 13): date(2029, 10, 31),
    (3, 14): date(2030, 10, 31),
}


def _ok(name: str, says: str, found: Sequence[str] = ()) -> Finding:
    return Finding(name, CheckVerdict.OK, says, examples=tuple(found))


def _problem(name: str, says: str, advice: str, found: Sequence[str] = ()) -> Finding:
    return Finding(name, CheckVerdict.PROBLEM, says, advice, len(found), tuple(found))


def _note(name: str, says: str, advice: str, found: Sequence[str] = ()) -> Finding:
    return Finding(name, CheckVerdict.NOTE, says, advice, len(found), tuple(found))


def _variables(names: Iterable[str]) -> list[str]:
    return [f"NEXUS_{name.upper()}" for name in names]


# Secrets


def check_secrets(settings: Settings) -> list[Finding]:
    """Are they there, too long to guess, and different from each other?"""
    wanted = {
        name: str(getattr(settings, name))
        for name in SECRETS
        if not (settings.jwks_url and name == "jwt_secret")
    }
    return [
        _missing_secrets(wanted),
        _weak_secrets(wanted),
        _shared_secrets(wanted),
        _secret_places(settings),
        _published_keys(settings),
    ]


def _missing_secrets(wanted: dict[str, str]) -> Finding:
    name, missing = "secrets.set", _variables(one for one, value in wanted.items() if not value)
    if missing:
        advice = f"Set them in the environment or in .env in the data folder. {NEW_ONE}"
        return _problem(name, f"Missing: {', '.join(missing)}.", advice, missing)
    return _ok(name, "All secrets are set.")


def _weak_secrets(wanted: dict[str, str]) -> Finding:
    name = "secrets.strength"
    weak = _variables(one for one, value in wanted.items() if value and _is_weak(value))
    if weak:
        says = f"Short or simple enough to guess: {', '.join(weak)}."
        return _problem(name, says, f"Use at least {SECRET_BYTES} random bytes. {NEW_ONE}", weak)
    return _ok(name, f"No secret is shorter than {SECRET_BYTES} bytes.")


def _is_weak(secret: str) -> bool:
    return len(secret.encode()) < SECRET_BYTES or len(set(secret)) < DIFFERENT


def _shared_secrets(wanted: dict[str, str]) -> Finding:
    name, values = "secrets.apart", [value for value in wanted.values() if value]
    shared = _variables(one for one, value in wanted.items() if values.count(value) > 1)
    if shared:
        says = (
            f"The same value is used more than once, so one that leaks opens the others: {', '.join(shared)}."
        )
        return _problem(name, says, f"Give each a value of its own. {NEW_ONE}", shared)
    return _ok(name, "Each secret has a value of its own.")


def _secret_places(settings: Settings) -> Finding:
    name, given = "secrets.place", [one for one in _variables(EVERY_SECRET) if os.environ.get(one)]
    if settings.env == "prod" and given:
        says = f"In the environment, where other tools of this machine may show them: {', '.join(given)}."
        return _note(
            name, says, "Let a manager of secrets fill the folder that NEXUS_SECRETS_DIR names.", given
        )
    return _ok(name, "No secret of a team is in the environment.")


def _published_keys(settings: Settings) -> Finding:
    name = "secrets.published"
    if settings.rsa_bits < LONG_ENOUGH and (settings.jwks_url or settings.oidc_issuer):
        says = f"RSA keys of {settings.rsa_bits} bits may sign people in."
        advice = f"If your identity provider can sign with ES256 or a longer key, set NEXUS_RSA_BITS={LONG_ENOUGH}."
        return _note(name, says, advice)
    return _ok(name, "No short RSA key can sign people in.")


# TLS


def check_tls(settings: Settings) -> list[Finding]:
    """Is anything that must stay between two machines sent in the open?"""
    return [_public_address(settings), _key_sources(settings), _services(settings), _roots()]


def _public_address(settings: Settings) -> Finding:
    name, public = "tls.pages", urlsplit(settings.public_url)
    if public.scheme == "https":
        return _ok(name, "Browsers reach Nexus over https: cookies are Secure, and answers carry HSTS.")
    if _is_here(public.hostname or settings.host) and settings.env != "prod":
        return _ok(name, "Browsers reach Nexus on this machine alone.")
    says = "Browsers are not told to use https: sign-ins and texts may cross a network in the open."
    return _problem(
        name, says, "Put a proxy with TLS in front of Nexus and set NEXUS_PUBLIC_URL=https://your.name"
    )


def _key_sources(settings: Settings) -> Finding:
    name = "tls.keys"
    given = {one: str(getattr(settings, one)) for one in ("jwks_url", "jwt_issuer", "oidc_issuer")}
    plain = _variables(one for one, url in given.items() if _is_plain(url))
    if plain:
        says = f"Keys are asked for over http, so anybody on the way can sign people in: {', '.join(plain)}."
        return _problem(name, says, "Use https:// addresses.", plain)
    return _ok(name, "No key that signs people in is fetched over http.")


def _services(settings: Settings) -> Finding:
    """Your own servers may be on a network of your own, so this is only a note."""
    name = "tls.services"
    plain = [
        one
        for one, is_plain in {
            "NEXUS_S3_ENDPOINT_URL": _is_plain(settings.s3_endpoint_url),
            "NEXUS_SUPABASE_URL": _is_plain(settings.supabase_url),
            "NEXUS_LLM_BASE_URL": _is_plain(settings.llm_base_url),
            "NEXUS_EMBED_BASE_URL": _is_plain(settings.embed_base_url),
            "NEXUS_SPEECH_BASE_URL": _is_plain(settings.speech_base_url),
            "NEXUS_REDIS_URL": settings.queue == "celery" and _is_plain(settings.redis_url, "redis"),
            "NEXUS_DATABASE_URL": _has_open_line(settings.database),
        }.items()
        if is_plain
    ]
    if plain:
        says = (
            f"Other machines are reached without TLS, or without checking who they are: {', '.join(plain)}."
        )
        advice = "If others share the network, use https:// and rediss://, and ?sslmode=verify-full for PostgreSQL."
        return _note(name, says, advice, plain)
    return _ok(name, "Store, model, queue and database are on this machine or reached over TLS.")


def _has_open_line(database: str) -> bool:
    url = make_url(database)
    if url.get_backend_name() == "sqlite" or _is_here(url.host or "") or (url.host or "").startswith("/"):
        return False
    return url.query.get("sslmode") not in VERIFIED


def _roots() -> Finding:
    """By making the context that fetches use."""
    from nexus.fetch.exchange import make_tls_context  # noqa: PLC0415 slow to load, and a plain doctor needs no TLS

    name, context = "tls.fetches", make_tls_context()
    count = context.cert_store_stats()["x509_ca"]
    if context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname and count:
        return _ok(name, f"Fetches verify certificates by {count} trusted roots.")
    says = "Fetches have no trusted roots, so every https address fails."
    return _problem(name, says, "Install the certificates of your system, or unset SSL_CERT_FILE.")


def _is_plain(url: str, scheme: str = "http") -> bool:
    """Whether an address leads to another machine without TLS."""
    given = urlsplit(url)
    return given.scheme.lower() == scheme and not _is_here(given.hostname or "")


def _is_here(host: str) -> bool:
    if host.lower().rstrip(".") in HERE:
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


# Hosts


def check_hosts(settings: Settings) -> list[Finding]:
    """By which names is Nexus called, from where, and whom does it believe?"""
    return [_names(settings), _listens(settings), _proxies(settings), _allowed(settings)]


def _names(settings: Settings) -> Finding:
    name = "hosts.names"
    if "*" in settings.hosts:
        says = "Nexus answers to any name, so a page of another site can reach it by pointing its name here."
        return _problem(
            name, says, "List the names of this Nexus in NEXUS_HOSTS, or unset it.", settings.hosts
        )
    wide = [one for one in settings.hosts if one.startswith("*.") and one.count(".") == 1]
    if wide:
        says = "Nexus answers to every name below a top-level domain."
        return _problem(name, says, "Name your own domain in NEXUS_HOSTS: *.example.com", wide)
    return _ok(name, "Nexus answers only to its own names.", settings.hosts)


def _listens(settings: Settings) -> Finding:
    name = "hosts.listens"
    if settings.host in EVERYWHERE:
        says = "Nexus listens on every address of this machine."
        return _note(name, says, "If a proxy on this machine is in front of it, set NEXUS_HOST=127.0.0.1")
    return _ok(name, f"Nexus listens on {settings.host}.")


def _proxies(settings: Settings) -> Finding:
    name = "hosts.proxies"
    networks = {one: ip_network(one, strict=False) for one in settings.proxies}
    wide = [one for one, network in networks.items() if network.prefixlen < WIDEST[network.version]]
    if wide:
        says = "Anybody is believed who says from which address they come: limits and the audit log can be deceived."
        return _problem(name, says, "Name only the addresses of your proxies in NEXUS_PROXIES.", wide)
    return _ok(name, "Only proxies that you named are believed.", settings.proxies)


def _allowed(settings: Settings) -> Finding:
    name = "hosts.fetches"
    if settings.fetch_allow:
        says = "Everybody who can add an address can reach these addresses of your own network."
        return _note(name, says, "Unset NEXUS_FETCH_ALLOW if you don't need them.", settings.fetch_allow)
    return _ok(name, "Only public addresses are fetched.")


# Permissions


def check_permissions(settings: Settings) -> list[Finding]:
    """Can other users of this machine read what is Nexus's own?"""
    folder, database = settings.data_dir, make_url(settings.database)
    findings = [
        check_secrets_file("permissions.secrets", folder / "secrets.json"),
        _out_of_reach("permissions.settings", env_file(folder), "600"),
        _out_of_reach("permissions.data", folder, "700"),
    ]
    if (kept := secrets_folder()) is not None:
        findings += [_out_of_reach("permissions.credentials", one, "400") for one in sorted(kept.iterdir())]
    if database.get_backend_name() == "sqlite" and database.database:
        findings.append(_out_of_reach("permissions.database", Path(database.database), "600"))
    return findings


def check_secrets_file(name: str, path: Path) -> Finding:
    """Nobody else may read it, whatever the folders above allow today."""
    if not path.exists():
        return _ok(name, "There is no file with local secrets.")
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & (GROUP | OTHERS):
        says = f"Other users of this machine can read {path} (mode {mode:04o})."
        return _problem(name, says, f"Run: chmod 600 {path}", [str(path)])
    return _ok(name, "Only you can read the local secrets.")


def _out_of_reach(name: str, path: Path, wanted: str) -> Finding:
    """Either it is private, or a folder above it is."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return _ok(name, f"There is no {path.name}.")
    advice, mode = f"Run: chmod {wanted} {path}", stat.S_IMODE(found.st_mode)
    if found.st_uid not in {os.getuid(), 0}:
        return _problem(name, f"{path} belongs to another user.", f"Run: chown {os.getuid()} {path}")
    if mode & OTHERS and _lets_through(path, stat.S_IXOTH):
        return _problem(name, f"Other users of this machine can open {path} (mode {mode:04o}).", advice)
    if mode & GROUP and _lets_through(path, stat.S_IXGRP | stat.S_IXOTH):
        return _note(name, f"The group of {path} can open it (mode {mode:04o}).", advice)
    return _ok(name, f"Nobody else can open {path.name}.")


def _lets_through(path: Path, way: int) -> bool:
    return all(folder.stat().st_mode & way for folder in path.absolute().parents)


# Files


def check_files(settings: Settings) -> list[Finding]:
    """Does a scanner see what strangers send?"""
    name = "files.scanner"
    if not settings.scanner:
        says = "Files are not scanned for malware."
        if settings.env != "prod":
            return [_ok(name, f"{says} They are yours.")]
        advice = "Set NEXUS_SCANNER to the address of clamd."
        return [_note(name, f"{says} Members of a library get what others have put there.", advice)]
    try:
        Scanner(settings.scanner, SCANNER_SECONDS).ping()
    except ScannerAway:
        advice = "Start it, or correct NEXUS_SCANNER. Until then no file is taken in."
        return [_problem(name, f"The malware scanner at {settings.scanner} does not answer.", advice)]
    return [_ok(name, "A malware scanner sees every file before it is kept.")]


# Versions


def check_versions(_: Settings) -> list[Finding]:
    """Does anything that Nexus stands on have a known flaw, or get no fixes any more?"""
    return [
        _ok("versions.nexus", f"This is Nexus {nexus.__version__}."),
        _python(sys.version_info[:2], datetime.now(UTC).date()),
        _openssl(),
        _packages(),
    ]


def _python(version: tuple[int, int], today: date) -> Finding:
    name, said = "versions.python", ".".join(map(str, version))
    last = LAST_FIXES.get(version)
    if last is not None and last < today:
        says = f"Python {said} gets no security fixes since {last:%B %Y}."
        return _problem(name, says, "Install Nexus with a newer Python.")
    return _ok(name, f"Python {platform.python_version()} gets security fixes.")


def _openssl() -> Finding:
    name = "versions.openssl"
    if ssl.OPENSSL_VERSION_INFO < (3,):
        says = f"{ssl.OPENSSL_VERSION} gets no security fixes any more."
        return _problem(name, says, "Use a Python that is built with OpenSSL 3.")
    return _ok(name, f"{ssl.OPENSSL_VERSION}.")


def _packages() -> Finding:
    from nexus.upkeep import advisories  # noqa: PLC0415 slow to load, and the usual examination does without

    name = "versions.packages"
    checked, listed = advisories.read_advisories(advisories.LISTED.read_text())
    found = advisories.vulnerable(advisories.installed(), listed)
    if found:
        says = "Installed packages have known flaws."
        return _problem(name, says, "Install what requirements/run.txt locks, or newer versions.", found)
    return _ok(name, f"No installed package has a flaw that was known on {checked}.")
