"""Settings about users' shares: how much one of them may take of what all of them use."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings


class ShareSettings(BaseSettings):
    """Each is for one user. Requests, threads and streams are counted by each server process, bytes for all together.

    The local owner, whose machine it is, may make any number of requests, subscribe to any number of feeds and keep any
    number of bytes.
    """

    requests_per_minute: int = Field(
        6000, ge=1, description="How many requests a user may make per minute at a server."
    )
    requests_at_once: int = Field(
        200,
        ge=1,
        description="How many requests of a user a server works on at once, event streams included.",
    )
    threads_per_user: int = Field(
        8, ge=1, description="How many threads of a server a user takes at once; further requests wait."
    )
    slow_calls_per_user: int = Field(
        16,
        ge=1,
        description="How many calls of a user may wait for sites and models at once, and how many for the file "
        "store; further calls wait their turn.",
    )
    bodies_mib_per_user: int = Field(
        64,
        ge=16,
        description="How much of the requests that a user sends at once a server holds in memory, in MiB; files don't "
        "count.",
    )
    streams_per_user: int = Field(
        20,
        ge=1,
        description="How many event streams a user may have open at a server, each page has one; and how many "
        "recordings they may play there at once.",
    )
    uploads_per_user: int = Field(
        100,
        ge=1,
        description="How many upload links a user may have that are neither used nor expired.",
    )
    subscriptions_per_user: int = Field(
        1000,
        ge=1,
        description="How many feeds a user may subscribe to, counted over all their libraries.",
    )
    stored_gib_per_user: float = Field(
        100,
        gt=0,
        description="How much the files that a user has uploaded or imported, and the files and pictures that were "
        "fetched for them, may take up, in GiB.",
    )
    staged_gib_per_user: float = Field(
        10, gt=0, description="How much the files that a user has sent for an import may take up, in GiB."
    )
    quota_ingest_urls: int | None = Field(
        None, ge=0, description="How many URLs a user may add per day; empty means no limit."
    )
    quota_transcribe_seconds: int | None = Field(
        None,
        ge=0,
        description="How many seconds of transcription a user may use per day; empty means no limit.",
    )
    quota_llm_tokens: int | None = Field(
        None, ge=0, description="How many model tokens a user may use per day; empty means no limit."
    )
    quota_embed_tokens: int | None = Field(
        None,
        ge=0,
        description="How many tokens of a user's texts are made searchable by meaning per day. Empty means no limit.",
    )
