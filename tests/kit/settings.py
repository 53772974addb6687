"""Settings for tests."""

from __future__ import annotations

from pathlib import Path

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from nexus.settings import Settings
from tests.kit.run_storage import run_prefix


class GivenSettings(Settings):
    """Settings that come from their arguments alone. Looking for each in the environment takes 25 ms, at every test."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


def make_settings(database_url: str, folder: Path, **more: object) -> Settings:
    """Settings of a test, independent of the machine's environment and .env file."""
    given: dict[str, object] = {
        "env": "test",
        "database_url": database_url,
        "data_dir": folder,
        "jwt_secret": "a-secret-of-the-tests-that-is-long-enough",
        "internal_secret": "internal-secret-of-the-tests-that-is-long",
        "session_secret": "session-secret-of-the-tests-that-is-long",
        "poll_seconds": 0.05,
        "sweep_seconds": 0.05,
        "storage_prefix": run_prefix(),
        # A model takes seconds to start: tests of embedding bring their own.
        "embed": "off",
        "speech": "off",
        **more,
    }
    return GivenSettings(**given)  # type: ignore[arg-type]
