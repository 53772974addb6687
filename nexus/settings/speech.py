"""Settings about the model that turns speech into text."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings


class SpeechSettings(BaseSettings):
    speech: Literal["", "local", "openai", "off"] = Field(
        "",
        description="What transcribes recordings that have no transcript: the model that `make speech` installs, which "
        "knows English, a server with OpenAI's transcription API, or nothing; empty means the model if it is "
        "installed.",
    )
    speech_base_url: str = Field(
        "",
        description="The address of the server with OpenAI's transcription API; empty means OpenAI itself.",
    )
    speech_api_key: str = Field("", description="The key of that server; empty if it needs none.")
    speech_model: str = Field(
        "whisper-1", min_length=1, description="The model that the server is asked for."
    )
    speech_seconds: float = Field(
        300.0,
        gt=0,
        le=600,
        description="How long a model may take for one piece of a recording, which has up to ten minutes.",
    )
    audio_mib: int = Field(
        500, ge=1, description="The size of the largest sound file that is fetched to be transcribed, in MiB."
    )
