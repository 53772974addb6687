"""Typed rows of whole tables. A query that selects less defines its own row type next to it.

A test compares these with the tables: names, types, and what may be missing.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from nexus.states import job, story
from nexus.states.media import Kind, MediaStatus, Origin, Stage
from nexus.states.subscription import SubscriptionStatus


class IdRow(NamedTuple):
    """For queries that only ask which row, or whether there is one."""

    id: UUID


class MediaRow(NamedTuple):
    id: UUID
    kind: Kind
    title: str | None
    processing_status: MediaStatus
    status_before: MediaStatus | None
    failure_stage: Stage | None
    last_error_code: str | None
    last_error_message: str | None
    processing_attempts: int
    tries: int
    run_after: datetime
    lease_expires_at: datetime | None
    processing_started_at: datetime | None
    processing_completed_at: datetime | None
    failed_at: datetime | None
    requested_url: str | None
    canonical_url: str | None
    file_sha256: str | None
    provider: str | None
    provider_id: str | None
    external_playback_url: str | None
    host: str
    created_by_user_id: UUID
    created_at: datetime
    updated_at: datetime
    request_id: str | None
    revision: int
    newest_revision: int
    last_revision: int


class FileRow(NamedTuple):
    media_id: UUID
    revision: int
    storage_path: str
    content_type: str
    size_bytes: int
    filename: str


class UploadRow(NamedTuple):
    media_id: UUID
    filename: str
    content_type: str
    size_bytes: int
    begun_at: datetime
    expires_at: datetime


class RevisionRow(NamedTuple):
    media_id: UUID
    number: int
    title: str | None
    title_key: str
    content_hash: str
    origin: Origin
    made_by: UUID | None
    private_to: UUID | None
    extractor: str
    byline: str | None
    site: str | None
    published: str | None
    language: str | None
    lead_image: str | None
    excerpt: str | None
    source: str | None
    words: int
    pieces: int
    characters: int
    outline: str
    fetched_url: str | None
    written_at: datetime
    seen_at: datetime
    seen_by: str
    etag: str | None
    last_modified: str | None


class RefreshRow(NamedTuple):
    id: UUID
    media_id: UUID
    requested_by: UUID
    requested_at: datetime
    attempt: int
    tries: int
    run_after: datetime
    lease_expires_at: datetime | None
    error_code: str | None
    error_message: str | None
    request_id: str | None


class PictureRow(NamedTuple):
    id: UUID
    media_id: UUID
    revision: int
    place: int
    source: str
    user_id: UUID
    asked_at: datetime
    attempt: int
    tries: int
    run_after: datetime
    lease_expires_at: datetime | None
    error_code: str | None
    name: str | None
    storage_path: str | None
    sha256: str | None
    content_type: str | None
    size_bytes: int | None
    width: int | None
    height: int | None


class HistoryRow(NamedTuple):
    id: int
    tx: int
    subject: str
    subject_id: UUID
    event: str
    from_status: str | None
    to_status: str
    at: datetime
    actor: str
    attempt: int
    error_code: str | None


class LibraryRow(NamedTuple):
    id: UUID
    name: str
    owner_user_id: UUID
    is_default: bool
    created_at: datetime


class JobRow(NamedTuple):
    id: UUID
    created_by_user_id: UUID
    library_id: UUID | None
    media_id: UUID | None
    url: str | None
    canonical_url: str | None
    status: job.JobStatus
    status_before: job.JobStatus | None
    attempt: int
    tries: int
    lease_expires_at: datetime | None
    run_after: datetime | None
    generate_after: datetime | None
    drafted_for_user_id: UUID | None
    raw_html: bytes | None
    charset: str | None
    http_status: int | None
    content_type: str | None
    fetched_url: str | None
    extracted_title: str | None
    extracted_text: str | None
    manually_provided: bool
    error_code: str | None
    error_message: str | None
    story_id: UUID | None
    fetched_at: datetime | None
    extracted_at: datetime | None
    generated_at: datetime | None
    created_at: datetime
    updated_at: datetime
    request_id: str | None
    media_revision: int | None
    removed_at: datetime | None


class IndexingRow(NamedTuple):
    id: UUID
    media_id: UUID
    user_id: UUID
    attempt: int
    tries: int
    run_after: datetime
    lease_expires_at: datetime | None
    error_code: str | None


class FeedRow(NamedTuple):
    id: UUID
    url: str
    title: str | None
    author: str | None
    description: str | None
    site_url: str | None
    picture_url: str | None
    language: str | None
    is_podcast: bool
    created_at: datetime


class SubscriptionRow(NamedTuple):
    id: UUID
    library_id: UUID
    feed_id: UUID
    created_by_user_id: UUID
    status: SubscriptionStatus
    status_before: SubscriptionStatus | None
    takes_new: bool
    takes_first: int
    attempt: int
    tries: int
    run_after: datetime
    lease_expires_at: datetime | None
    failures: int
    error_code: str | None
    error_message: str | None
    interval_seconds: int
    etag: str | None
    last_modified: str | None
    polled_at: datetime | None
    succeeded_at: datetime | None
    brought_at: datetime | None
    created_at: datetime
    updated_at: datetime
    request_id: str | None


class FeedItemRow(NamedTuple):
    id: UUID
    subscription_id: UUID
    identity: str
    told_by: str | None
    guid: str | None
    title: str | None
    author: str | None
    url: str | None
    published_at: datetime | None
    summary: str | None
    html: str | None
    text: str | None
    picture_url: str | None
    language: str | None
    enclosure_url: str | None
    enclosure_type: str | None
    enclosure_bytes: int | None
    seconds: float | None
    season: int | None
    number: int | None
    chapters_url: str | None
    chapters: str
    transcripts: str
    shown_at: datetime
    seen_at: datetime
    digest: str
    wanted_at: datetime | None
    media_id: UUID | None
    taken_at: datetime | None

    @property
    def chapter_list(self) -> list[tuple[float, str]]:
        return [tuple(one) for one in json.loads(self.chapters)]

    @property
    def transcript_list(self) -> list[dict[str, Any]]:
        return list(json.loads(self.transcripts))


class StoryRow(NamedTuple):
    id: UUID
    job_id: UUID
    slug: str
    status: story.StoryStatus
    status_before: story.StoryStatus | None
    revision: int
    headline: str
    summary: str
    sections: str
    sources: str
    article_text: str
    model: str
    prompt_version: str
    tokens_used: int
    generated_at: datetime
    edited_at: datetime | None
    published_at: datetime | None
    created_at: datetime
    updated_at: datetime
    corrected_at: datetime | None
    correction: str | None
