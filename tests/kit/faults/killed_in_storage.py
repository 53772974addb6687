"""Users whose process is killed in the middle of a call to the store."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from uuid import UUID

from nexus.app import App, build
from nexus.media import uploads
from nexus.settings import Settings
from nexus.storage.local import LocalStorage
from tests.kit.commands import FORKS
from tests.kit.uploads import Uploader, expected_upload


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class KillingStore(LocalStorage):
    """A store that kills its process during the call that DIE_IN names."""

    def stream(self, path: str) -> Iterator[bytes]:
        for chunk in super().stream(path):
            if os.environ["DIE_IN"] == "stream":
                die()
            yield chunk

    def put(self, path: str, chunks: Iterable[bytes], content_type: str) -> None:
        def broken() -> Iterator[bytes]:
            for chunk in chunks:
                yield chunk
                if os.environ["DIE_IN"] == "put":
                    die()

        super().put(path, broken(), content_type)

    def delete(self, path: str) -> None:
        if os.environ["DIE_IN"] == "delete":
            die()
        super().delete(path)


def run_with_killing_store(
    settings: Settings, moment: str, act: Callable[..., object], *given: object
) -> None:
    """In a process of its own: act on an app whose store kills the process."""
    os.environ["DIE_IN"] = moment
    app = build(settings)
    storage = app.files.storage
    assert isinstance(storage, LocalStorage)
    deadly = KillingStore(storage.folder, storage.secret, storage.clock)
    act(replace(app, files=replace(app.files, storage=deadly)), *given)


def kill_during(settings: Settings, moment: str, act: Callable[..., object], *given: object) -> None:
    process = FORKS.Process(target=run_with_killing_store, args=(settings, moment, act, *given))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


def confirm(app: App, user: UUID, media_id: UUID) -> None:
    Uploader(app, user).confirm(media_id)


def delete(app: App, user: UUID, media_id: UUID) -> None:
    Uploader(app, user).delete(media_id)


def take_in(app: App, user: UUID, body: bytes) -> None:
    uploads.take_in(app.sessions, app.files, user, expected_upload(body), [body])
