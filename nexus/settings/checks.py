"""What settings must agree on with each other. Each check raises ValueError with what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus.settings.local_secrets import SECRETS

if TYPE_CHECKING:
    from nexus.settings import Settings

#: The least that prod takes: shorter secrets can be guessed from one token.
SECRET_BYTES = 32
#: Settings whose addresses publish keys.
KEY_SOURCES = ("jwks_url", "jwt_issuer", "oidc_issuer")
STORES = {
    "local": (),
    "s3": ("s3_bucket",),
    "supabase": ("supabase_url", "supabase_service_key", "supabase_bucket"),
}


def require_secrets(settings: Settings) -> None:
    if settings.env != "prod":
        return
    wanted = {
        "NEXUS_JWT_SECRET or NEXUS_JWKS_URL": settings.jwt_secret or settings.jwks_url,
        "NEXUS_INTERNAL_SECRET": settings.internal_secret,
        "NEXUS_SESSION_SECRET": settings.session_secret,
    }
    if missing := [name for name, value in wanted.items() if not value]:
        raise ValueError(f"NEXUS_ENV=prod needs {', '.join(missing)}")
    if short := [_variable(name) for name in SECRETS if _is_short(str(getattr(settings, name)))]:
        raise ValueError(
            f"NEXUS_ENV=prod needs secrets of at least {SECRET_BYTES} bytes, and too short are {', '.join(short)}. "
            "Make one with: openssl rand -base64 32"
        )


def require_https(settings: Settings) -> None:
    """Over http, anybody on the way could publish keys of their own."""
    plain = [
        _variable(name) for name in KEY_SOURCES if str(getattr(settings, name)).lower().startswith("http:")
    ]
    if settings.env == "prod" and plain:
        raise ValueError(f"NEXUS_ENV=prod needs an https:// address in {', '.join(plain)}")


def require_whole_provider(settings: Settings) -> None:
    if bool(settings.oidc_issuer) != bool(settings.oidc_client_id):
        raise ValueError("NEXUS_OIDC_ISSUER and NEXUS_OIDC_CLIENT_ID need each other")
    if settings.oidc_issuer and "openid" not in settings.oidc_scopes.split():
        raise ValueError("NEXUS_OIDC_SCOPES needs openid among its words")


def require_public_fetches(settings: Settings) -> None:
    if settings.env == "prod" and settings.fetch_allow:
        raise ValueError("NEXUS_FETCH_ALLOW can't be set in prod: only public addresses are fetched there")


def require_whole_store(settings: Settings) -> None:
    if missing := [_variable(name) for name in STORES[settings.storage] if not getattr(settings, name)]:
        raise ValueError(f"NEXUS_STORAGE={settings.storage} needs {', '.join(missing)}")


def require_model_folder(settings: Settings) -> None:
    if settings.embed == "folder" and settings.embed_folder is None:
        raise ValueError("NEXUS_EMBED=folder needs NEXUS_EMBED_FOLDER")


ALL = (
    require_secrets,
    require_https,
    require_whole_provider,
    require_public_fetches,
    require_whole_store,
    require_model_folder,
)


def _variable(name: str) -> str:
    return f"NEXUS_{name.upper()}"


def _is_short(secret: str) -> bool:
    return 0 < len(secret.encode("utf-8", "surrogatepass")) < SECRET_BYTES
