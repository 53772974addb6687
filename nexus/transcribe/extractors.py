# ruff: noqa: PLC0415
"""The extractors of videos and episodes, as the registry finds them: what they need is imported with the first one."""

from __future__ import annotations

from nexus.extract import Extraction, Source


def extract_video(source: Source) -> Extraction:
    """Return the transcript of a video as a text."""
    from nexus.transcribe.videos import video

    return video(source)


def extract_episode(source: Source) -> Extraction:
    """Return the transcript of an episode of a podcast as a text."""
    from nexus.transcribe.videos import podcast_episode

    return podcast_episode(source)
