"""People whose process is killed in the middle of a call to the store, forked from one that has imported everything."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from uuid import UUID

from nexus.app import App, build
from nexus.media import uploads
from nexus.settings import Settings
from nexus.storage.local import Local
from tests.commands import _FORKS
from tests.files import Person, expected


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Deadly(Local):
    """A store during one of whose calls the process ends."""

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


def doomed(settings: Settings, moment: str, act: Callable[..., object], *given: object) -> None:
    """In a process of its own: act as a person whose process ends in the middle of a call to the store."""
    os.environ["DIE_IN"] = moment
    app = build(settings)
    storage = app.files.storage
    assert isinstance(storage, Local)
    deadly = Deadly(storage.folder, storage.secret, storage.clock)
    act(replace(app, files=replace(app.files, storage=deadly)), *given)


def killed(settings: Settings, moment: str, act: Callable[..., object], *given: object) -> None:
    process = _FORKS.Process(target=doomed, args=(settings, moment, act, *given))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


def confirm(app: App, user: UUID, media_id: UUID) -> None:
    Person(app, user).confirm(media_id)


def delete(app: App, user: UUID, media_id: UUID) -> None:
    Person(app, user).delete(media_id)


def take_in(app: App, user: UUID, body: bytes) -> None:
    uploads.take_in(app.sessions, app.files, user, expected(body), [body])
