"""The setting that says which languages people read."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")


class LanguageSettings(BaseSettings):
    languages: Annotated[tuple[str, ...], NoDecode] = Field(
        ("en",),
        description="The languages that people here read, comma-separated, as in `en` or `pt-BR`: captions and "
        "transcripts are taken in the first of them that there is, or else as they are spoken.",
    )

    @field_validator("languages", mode="before")
    @classmethod
    def _split_languages(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value

    @field_validator("languages", mode="after")
    @classmethod
    def _know_languages(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [entry for entry in value if not _LANGUAGE.fullmatch(entry)]:
            raise ValueError(f"{wrong[0]!r} is not the code of a language, such as en or pt-BR")
        return value
