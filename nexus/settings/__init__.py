"""Every setting, with its default and a description. A door builds the settings and passes them down."""

from __future__ import annotations

import os
import re
import uuid
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SecretsSettingsSource,
    SettingsConfigDict,
)

from nexus.settings import checks
from nexus.settings.embed import EmbedSettings
from nexus.settings.languages import LanguageSettings
from nexus.settings.local_secrets import SECRETS, BadSettings, read_or_make
from nexus.settings.shares import ShareSettings
from nexus.settings.sources import chosen_env_file, default_data_dir, env_file, secrets_folder
from nexus.settings.speech import SpeechSettings

__all__ = [
    "SECRETS",
    "BadSettings",
    "Lives",
    "Settings",
    "default_data_dir",
    "env_file",
    "load",
    "secrets_folder",
]

CommaList = Annotated[tuple[str, ...], NoDecode]
HOST_AND_PORT = re.compile(r"[^\s/@\\]+:[1-9][0-9]{0,4}", re.ASCII)
WEB_ADDRESSES = [f"{name}_base_url" for name in ("llm", "embed", "speech")]
DATABASES = ("sqlite", "postgresql", "postgres")
#: Stands for the file that NEXUS_ENV_FILE names, or else the one in the data folder.
CHOSEN_ENV_FILE = Path("chosen by NEXUS_ENV_FILE or the data folder")


class Lives(NamedTuple):
    """How long a browser stays signed in: without being used, and at most."""

    idle: timedelta
    most: timedelta


class Settings(ShareSettings, EmbedSettings, LanguageSettings, SpeechSettings):
    """Read from `NEXUS_*` environment variables, then from `.env` in the data folder, then from a folder with a
    file for each secret. They never change afterwards."""

    model_config = SettingsConfigDict(
        env_prefix="NEXUS_", env_file=CHOSEN_ENV_FILE, env_ignore_empty=True, extra="ignore", frozen=True
    )

    env: Literal["local", "test", "prod"] = Field(
        "local", description="Where this runs. `prod` refuses to start without secrets."
    )
    data_dir: Path = Field(
        default_factory=default_data_dir,
        description="The folder for the embedded database, local files and local secrets.",
    )
    database_url: str = Field(
        "",
        description="The SQLAlchemy URL of a SQLite or PostgreSQL database; empty means SQLite in the data folder.",
    )
    database_pool: int = Field(
        20, ge=1, description="How many database connections one process opens at most."
    )
    redis_url: str = Field(
        "redis://127.0.0.1:6379/0", description="The Redis that carries wake-ups to Celery workers."
    )
    queue: Literal["local", "inline", "celery"] = Field(
        "local", description="What does the work: threads of this process, the caller, or Celery workers."
    )
    extraction: Literal["on", "off"] = Field(
        "on", description="`off` leaves every new item pending; imports still read their files."
    )
    plugins: CommaList = Field(
        (), description="Modules that register extractors, imported at start; comma-separated."
    )
    worker_threads: int = Field(
        8,
        ge=1,
        le=64,
        description="How many items one worker process handles at once; most of them wait for a site.",
    )
    parser_processes: int = Field(
        default_factory=lambda: os.cpu_count() or 1,
        ge=1,
        le=64,
        description="How many documents are parsed at once, each in its own process.",
    )
    parser_seconds: float = Field(60.0, gt=0, description="How long parsing one document may take.")
    parser_memory_mib: int = Field(
        1024, ge=256, description="How much memory a parser process may use, in MiB."
    )
    sandbox: Literal["", "required", "optional"] = Field(
        "",
        description="Whether Nexus refuses to start if parsers can't be confined; empty means required in prod and "
        "optional elsewhere.",
    )
    fetch_allow: CommaList = Field(
        (),
        description="Exact `host:port` pairs that may be fetched although they are not public; not allowed in prod.",
    )
    fetch_ports: Annotated[tuple[int, ...], NoDecode] = Field(
        (80, 443, 8080, 8443), description="The ports that Nexus may fetch from, comma-separated."
    )
    fetch_seconds: float = Field(30.0, gt=0, description="How long one fetch may take in total.")
    fetch_mib: int = Field(10, ge=1, description="How much is fetched from one address at most, in MiB.")
    fetch_per_host: int = Field(2, ge=1, description="How many requests Nexus sends to one host at once.")
    fetch_delay_seconds: float = Field(
        0.25, ge=0, description="The shortest pause between two requests to one host, in seconds."
    )
    pictures_per_text: int = Field(
        100, ge=0, le=200, description="How many pictures of a text are fetched at most; 0 means none."
    )
    picture_mib: int = Field(8, ge=1, description="The size of the largest picture, in MiB.")
    pictures_mib: int = Field(64, ge=1, description="How much the pictures of one text may take, in MiB.")
    picture_megapixels: int = Field(
        50, ge=1, le=1000, description="How many million pixels a picture may have."
    )
    picture_seconds: float = Field(20.0, gt=0, description="How long fetching one picture may take.")
    picture_hours: float = Field(24, gt=0, description="After how long Nexus stops trying to get a picture.")
    poll_seconds: float = Field(
        1.0, gt=0, description="How often an idle worker looks for due work on its own."
    )
    lease_seconds: float = Field(
        60.0,
        gt=0,
        description="How long a worker holds an item, a refresh or a job's step without a sign of life.",
    )
    work_seconds: float = Field(
        900.0,
        gt=0,
        description="How long work on an item, a refresh or a step may take before another worker tries it.",
    )
    sweep_seconds: float = Field(
        10.0, gt=0, description="How often Nexus looks for expired leases and forgotten work."
    )
    upkeep: Literal["", "on", "off"] = Field(
        "",
        description="Whether workers remove what crashes left behind, as `nexus clean --remove` does; empty means yes "
        "for local storage and no for a bucket, which others may share.",
    )
    upkeep_hours: float = Field(1.0, gt=0, description="How often workers do this upkeep, in hours.")
    backoff_seconds: float = Field(
        5.0, ge=0, description="The pause before the second try; twice as long before the third, with jitter."
    )
    jwt_secret: str = Field("", description="The HS256 secret of bearer tokens.")
    jwks_url: str = Field(
        "",
        description="The URL of the RS256 and ES256 keys of bearer tokens, used instead of the secret.",
    )
    rsa_bits: int = Field(
        2048,
        ge=2048,
        description="The shortest RSA key that Nexus takes from an identity provider. Set 3072 if yours has keys of "
        "that length, or none but ES256.",
    )
    jwt_issuer: str = Field("nexus", description="The `iss` that a bearer token must carry.")
    jwt_audience: str = Field("nexus", description="The `aud` that a bearer token must carry.")
    internal_secret: str = Field(
        "", description="The secret that callers of the API send in `X-Nexus-Internal`."
    )
    session_secret: str = Field(
        "",
        description="Signs links to local files, and sign-ins in progress at an identity provider.",
    )
    session_idle_days: float = Field(
        14, gt=0, description="After how many days without use a browser has to sign in again."
    )
    session_days: float = Field(
        90, gt=0, description="After how many days a browser has to sign in again at the latest."
    )
    oidc_issuer: str = Field(
        "",
        description="The identity provider at which people sign in to the pages: its OpenID Connect issuer. Register "
        "`/sign-in/back` below the public address there as the redirect URI.",
    )
    oidc_client_id: str = Field("", description="The client id of Nexus at the provider.")
    oidc_client_secret: str = Field(
        "", description="The secret that goes with it; empty for a public client. PKCE is used in any case."
    )
    oidc_scopes: str = Field("openid profile email", description="What Nexus asks the provider for.")
    oidc_name: str = Field(
        "", description="What the sign-in button calls the provider; empty means its host name."
    )
    host: str = Field("127.0.0.1", description="The address that `nexus serve` listens on.")
    port: int = Field(8000, ge=0, le=65535, description="The port that `nexus serve` listens on.")
    hosts: CommaList = Field(
        (),
        description="The names by which Nexus may be called, comma-separated, each as `nexus.example.com` or "
        "`*.example.com`; empty means the host of `NEXUS_PUBLIC_URL`, `NEXUS_HOST` and loopback; `*` means any.",
    )
    proxies: CommaList = Field(
        ("127.0.0.1", "::1"),
        description="The addresses or networks of proxies in front of Nexus, comma-separated: their `X-Forwarded-For` "
        "and `X-Forwarded-Proto` are believed, and their connections don't count by address.",
    )
    connections: int = Field(2000, ge=1, description="How many connections a server holds at once.")
    connections_per_address: int = Field(
        256,
        ge=1,
        description="How many connections it holds from one IPv4 address or one IPv6 /64, except from proxies.",
    )
    log_format: Literal["", "console", "json"] = Field(
        "", description="Empty means JSON in prod and readable lines elsewhere."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="The lowest level of log lines to write."
    )
    storage: Literal["local", "s3", "supabase"] = Field("local", description="Where files are kept.")
    storage_prefix: str = Field(
        "",
        pattern=r"^([A-Za-z0-9_-]+/)*$",
        description="A prefix for every path in the store, with a slash at its end.",
    )
    public_url: str = Field(
        "", description="The address at which browsers reach Nexus; empty means the one they asked for."
    )
    s3_bucket: str = Field("", description="The bucket of the S3 store.")
    s3_endpoint_url: str = Field("", description="The address of the S3 store; empty means AWS.")
    s3_region: str = Field("us-east-1", description="The region of the S3 store.")
    s3_access_key: str = Field(
        "", description="The access key of the S3 store; empty means the credentials of the AWS environment."
    )
    s3_secret_key: str = Field("", description="The secret key of the S3 store.")
    supabase_url: str = Field("", description="The address of the Supabase project.")
    supabase_service_key: str = Field("", description="The service key of the Supabase project.")
    supabase_bucket: str = Field("", description="The private bucket of the Supabase project.")
    max_pdf_mib: int = Field(100, ge=1, description="The size of the largest PDF, in MiB.")
    max_epub_mib: int = Field(50, ge=1, description="The size of the largest EPUB or text file, in MiB.")
    link_seconds: int = Field(300, ge=1, le=604800, description="How long a signed link lives.")
    upload_hours: float = Field(
        24, gt=0, description="How long after it began an upload can still be confirmed."
    )
    check_seconds: float = Field(60, gt=0, description="How long checking an uploaded file may take.")
    scanner: str = Field(
        "",
        description="The malware scanner that sees every file and picture before Nexus keeps it: `host:port` or the "
        "path of the socket of clamd; empty means none.",
    )
    revision_days: float = Field(
        30,
        gt=0,
        description="How many days a version of an item is kept after the last library let go of it.",
    )
    llm_base_url: str = Field(
        "",
        description="The address of a model with OpenAI's chat completions API; empty means OpenAI itself.",
    )
    llm_api_key: str = Field(
        "",
        validation_alias=AliasChoices("NEXUS_LLM_API_KEY", "OPENAI_API_KEY", "llm_api_key"),
        description="The model's key. Without a key and an address, drafts are made from the article's own sentences.",
    )
    llm_model: str = Field("gpt-5-mini", min_length=1, description="The model that writes drafts.")
    llm_seconds: float = Field(45.0, gt=0, le=90, description="How long the model may take for one draft.")
    invitation_days: float = Field(
        14, gt=0, description="How many days an invitation to a library can be accepted."
    )
    audit_days: int = Field(365, ge=1, description="How many days entries of the audit log are kept.")
    operators: Annotated[tuple[uuid.UUID, ...], NoDecode] = Field(
        (),
        description="Ids of users who may read the whole audit log, comma-separated; the local owner always may.",
    )
    celery_always_eager: bool = Field(
        False,
        validation_alias=AliasChoices("CELERY_ALWAYS_EAGER", "celery_always_eager"),
        description="Run Celery tasks in the caller, for tests.",
    )
    local_owner: uuid.UUID | None = Field(
        None, description="The user that the CLI and the sign-in link act as; created with the local secrets."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the chosen `.env`, never that of the current folder, which may be somebody else's."""
        if getattr(dotenv_settings, "env_file", None) == CHOSEN_ENV_FILE:
            dotenv_settings = DotEnvSettingsSource(settings_cls, chosen_env_file(init_settings()))
            if (folder := secrets_folder()) is not None:
                file_secret_settings = SecretsSettingsSource(settings_cls, folder)
        return init_settings, env_settings, dotenv_settings, file_secret_settings

    @field_validator("plugins", "fetch_allow", "fetch_ports", "hosts", "proxies", "operators", mode="before")
    @classmethod
    def _split_commas(cls, value: object) -> object:
        return (
            tuple(part.strip() for part in value.split(",") if part.strip())
            if isinstance(value, str)
            else value
        )

    @field_validator("fetch_allow", mode="after")
    @classmethod
    def _know_pairs(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [entry for entry in value if not HOST_AND_PORT.fullmatch(entry)]:
            raise ValueError(f"{wrong[0]} is not a host:port pair")
        return value

    @field_validator("scanner", mode="after")
    @classmethod
    def _know_scanner(cls, value: str) -> str:
        if value and not value.startswith("/") and not HOST_AND_PORT.fullmatch(value):
            raise ValueError("it must be host:port, or the path of a socket")
        return value

    @field_validator("proxies", mode="after")
    @classmethod
    def _know_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for entry in value:
            ip_network(entry, strict=False)  # says itself what is wrong
        return value

    @field_validator("database_url", mode="after")
    @classmethod
    def _know_database(cls, value: str) -> str:
        scheme, found, _ = value.partition("://")
        if value and (not found or scheme.partition("+")[0] not in DATABASES):
            raise ValueError("it must begin with sqlite:// or postgresql://")
        return value

    @field_validator(*WEB_ADDRESSES, "jwks_url", "oidc_issuer", "public_url", mode="after")
    @classmethod
    def _know_web_address(cls, value: str) -> str:
        given = urlsplit(value)
        if value and (given.scheme not in {"http", "https"} or not given.hostname):
            raise ValueError("it must be a web address that starts with http:// or https://")
        return value

    @field_validator("data_dir", mode="after")
    @classmethod
    def _expand_home(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @model_validator(mode="after")
    def _fit_together(self) -> Settings:
        for check in checks.ALL:
            check(self)
        return self

    @property
    def database(self) -> str:
        return self.database_url or f"sqlite:///{self.data_dir / 'nexus.sqlite3'}"

    @property
    def sign_in_lives(self) -> Lives:
        return Lives(timedelta(days=self.session_idle_days), timedelta(days=self.session_days))

    @property
    def oidc_shown_name(self) -> str:
        return self.oidc_name or urlsplit(self.oidc_issuer).hostname or ""

    @property
    def does_upkeep(self) -> bool:
        return self.upkeep == "on" or (not self.upkeep and self.storage == "local")

    def is_operator(self, user: uuid.UUID) -> bool:
        return user == self.local_owner or user in self.operators

    @property
    def needs_sandbox(self) -> bool:
        return self.sandbox == "required" or (not self.sandbox and self.env == "prod")

    @property
    def json_logs(self) -> bool:
        return self.log_format == "json" or (not self.log_format and self.env == "prod")


def load(data_dir: Path | None = None, **overrides: object) -> Settings:
    """Return the settings of a process. Outside prod, secrets that are not set come from the data folder.

    They are created there once.
    """
    given = {"data_dir": data_dir, **overrides}
    settings = Settings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    if settings.env == "prod":
        return settings
    kept = read_or_make(settings.data_dir)
    missing = {name: value for name, value in kept.items() if not getattr(settings, name)}
    return settings.model_copy(update=missing)
