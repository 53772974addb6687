"""Which other services let Nexus in by a key or a password that stays the same until somebody changes it."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from sqlalchemy import make_url

from nexus.settings import Settings
from nexus.upkeep.findings import CheckVerdict, Finding

ADVICE = (
    "Use certificates (?sslcert=&sslkey= for PostgreSQL, ?ssl_certfile=&ssl_keyfile= for Redis) and a role for S3. For "
    "anything else, give Nexus a key of its own, and have your manager of secrets replace it and restart Nexus."
)


def check_standing_keys(settings: Settings) -> list[Finding]:
    """Does a key that leaks today still open something in a year?"""
    name, standing = "secrets.standing", _standing(settings)
    if settings.env != "prod" or not standing:
        return [
            Finding(name, CheckVerdict.OK, "No service of a team is reached with a key that stays the same.")
        ]
    says = f"These are reached with keys or passwords that stay the same: {', '.join(standing)}."
    return [Finding(name, CheckVerdict.NOTE, says, ADVICE, len(standing), tuple(standing))]


def _standing(settings: Settings) -> list[str]:
    database = make_url(settings.database)
    has_key = {
        "PostgreSQL": database.get_backend_name() != "sqlite" and "sslcert" not in database.query,
        "Redis": settings.queue == "celery"
        and "ssl_certfile" not in parse_qs(urlsplit(settings.redis_url).query),
        "S3": settings.storage == "s3" and bool(settings.s3_secret_key),
        "Supabase": settings.storage == "supabase",
        "the identity provider": bool(settings.oidc_client_secret),
        "the model that drafts": bool(settings.llm_api_key),
        "the model that embeds": bool(settings.embed_api_key),
        "the model that transcribes": bool(settings.speech_api_key),
    }
    return [service for service, is_standing in has_key.items() if is_standing]
