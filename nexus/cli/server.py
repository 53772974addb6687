"""`nexus serve` and `nexus worker`: start the server with its workers, or a worker alone."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import typer
import uvicorn

import nexus
from nexus import logging
from nexus.app import App
from nexus.cli import garbage
from nexus.cli.context import build_app, load_settings
from nexus.cli.failures import Refused
from nexus.cli.startup import Opening, ServerPart
from nexus.cli.token import local_address, sign_in_link
from nexus.command_line import sign_in_command
from nexus.settings import Settings
from nexus.web import application
from nexus.web.http.readiness import Readiness
from nexus.web.http.serving import server_config
from nexus.worker.threads import Workers, rounds

log = logging.get_logger(__name__)

BACKLOG = 2048
#: What a server opens besides its connections: its database, its store, its workers and their parsers.
OTHER_FILES = 1024
#: Uploads allocate and free blocks of memory up to this size.
LARGE_BLOCK = 16 * 1024 * 1024
#: Messages to the main thread of a worker.
READY, STOP = b"r", b"."


class Server(uvicorn.Server):
    """Logs when it listens, and when it is told to stop."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._listening = listening
        self._stops_early = False
        #: Called when the signal comes, before anything ends.
        self.stopping: Callable[[], None] = lambda: None

    def stop_early(self, number: int, _: FrameType | None) -> None:
        """Handle a signal that comes before uvicorn has handlers, or that it raises again after it has stopped.

        A second Ctrl-C does not wait for the work under way.
        """
        self._stops_early = True
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.stopping()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._listening()
        if self._stops_early:
            asyncio.get_running_loop().call_soon(self.handle_exit, signal.SIGTERM, None)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        log.info("server_stopping", first="the work under way ends")
        self.config.app.state.feed.end()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def run_server(data_dir: Path | None, host: str | None, port: int | None) -> None:
    """Run the web server and, unless Celery does the work, the workers, the sweep and upkeep in the same process.

    It listens first, so that /healthz and /readyz answer while it waits for the database.
    """
    app = build_app(_confined(load_settings(data_dir, host=host, port=port)), quiet=False)
    with _listening(app.settings.host, app.settings.port) as door:
        bound: int = door.getsockname()[1]
        readiness, listening = Readiness(), threading.Event()
        _allow_files(app.settings.connections)
        config = server_config(application.create_application(app, readiness), app.settings)
        server = Server(config, listening.set)
        # uvicorn raises the signal again when it is done; the default handler would end the process before the workers.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, server.stop_early)
        _keep_memory()

        def welcome() -> None:
            listening.wait()
            _welcome(app, bound)

        def give_up() -> None:
            listening.wait()  # uvicorn ignores a stop that comes before its start
            server.should_exit = True

        opening = Opening(app, _parts(app), welcome, give_up, readiness)
        with _running(app, [opening]), _cancelling(app) as server.stopping:
            server.run(sockets=[door])
    if opening.failure is not None:
        raise opening.failure


def run_worker(data_dir: Path | None) -> None:
    """Run workers without a server, on the configured queue, until SIGTERM or SIGINT."""
    app = build_app(_confined(load_settings(data_dir)), quiet=False)
    told, tell = os.pipe()
    for number in (signal.SIGTERM, signal.SIGINT):
        # Not an Event: a handler that runs while this thread starts to wait for it would wait for its lock for ever.
        signal.signal(number, lambda *_: os.write(tell, STOP))
    opening = Opening(
        app, [Workers(app), *rounds(app)], lambda: _tell(tell, READY), lambda: _tell(tell, STOP)
    )
    with _running(app, [opening]):
        if os.read(told, 1) == READY:
            _listen(app, told)
    if opening.failure is not None:
        raise opening.failure


def _confined(chosen: Settings) -> Settings:
    """Refuse to start without a working sandbox, if the settings ask for one."""
    if not chosen.needs_sandbox:
        return chosen
    from nexus.upkeep.confinement import why_not_confined  # noqa: PLC0415 slow to load, and often not needed

    if found := why_not_confined():
        raise Refused(
            f"Documents can't be read safely on this machine. {' '.join(found)} `nexus doctor --security` says more. "
            "To start anyway, set NEXUS_SANDBOX=optional."
        )
    return chosen


def _tell(line: int, word: bytes) -> None:
    os.write(line, word)


def _listen(app: App, told: int) -> None:
    """Listen to the queue, which may handle signals itself. Until it does, a signal ends the process."""

    def wait() -> None:
        os.read(told, 1)
        # A second Ctrl-C does not wait for the work under way.
        signal.signal(signal.SIGINT, signal.default_int_handler)

    log.info("worker_ready", threads=app.settings.worker_threads, kinds=sorted(app.extractors))
    if app.queue.handles_signals:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: sys.exit())
        if select.select([told], [], [], 0)[0]:
            return
    app.queue.listen(wait)


def _allow_files(connections: int) -> None:
    """Each connection is an open file, and most systems allow a process a thousand unless it wants more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def _keep_memory() -> None:
    """Free one large block, after which glibc's malloc keeps such blocks for reuse.

    Otherwise every piece of an upload returns its memory to the system and requests it again, page by page: receiving
    512 MiB takes 1.63 s of CPU instead of 1.24 s.
    """
    bytes(LARGE_BLOCK)


def _parts(app: App) -> list[ServerPart]:
    parts: list[ServerPart] = [Workers(app)] if app.queue.works_in_server else []
    if not app.queue.works_elsewhere:
        parts.extend(rounds(app))
    return parts


@contextmanager
def _running(app: App, parts: list[ServerPart]) -> Iterator[None]:
    for part in parts:
        part.start()
    garbage.collect_from_now_on()
    try:
        yield
    finally:
        for part in parts:
            part.stop()
        app.close()


@contextmanager
def _cancelling(app: App) -> Iterator[Callable[[], None]]:
    """Yield a function for signal handlers that cancels imports at once. They are cancelled at the end in any case.

    A thread does it: a handler interrupts the main thread, which may hold the locks that cancelling needs.
    """
    told, tell = os.pipe()

    def cancel() -> None:
        os.read(told, 1)
        app.imports.cancel()

    thread = threading.Thread(target=cancel, name="nexus-canceller", daemon=True)
    thread.start()
    try:
        yield lambda: _ring(tell)
    finally:
        _ring(tell)
        thread.join()
        os.close(told)
        os.close(tell)


def _ring(line: int) -> None:
    os.write(line, b".")


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise Refused(_why_not(host, port, error)) from error


def _why_not(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        other = f"NEXUS_PORT={port + 1} make run, or nexus serve --port {port + 1}"
        return f"Port {port} of {host} is in use. Stop what uses it, or choose another: {other}"
    if error.errno == errno.EACCES:
        return f"You are not allowed to listen on port {port}. Choose one above 1023: nexus serve --port 8000"
    return (
        f"Nexus can't listen on {host}: {error.strerror}. Choose an address of this machine: --host 127.0.0.1"
    )


def _welcome(app: App, port: int) -> None:
    """Say that the server is ready. Nothing is said before the link is made, because the database may go away."""
    chosen = app.settings
    link = None
    if chosen.env != "prod" and chosen.local_owner is not None:
        link = sign_in_link(chosen, app.sessions, chosen.local_owner, port)
    log.info("server_ready", url=local_address(chosen, port))
    typer.secho(f"Nexus {nexus.__version__} is running.", bold=True)
    if link is not None:
        typer.echo("\nSign in:")
        typer.secho(link, fg="cyan")
        typer.echo(f"It works once, for ten minutes. Get another with: {sign_in_command(chosen, port)}")
        typer.echo(f"\nData: {chosen.data_dir}")
    typer.echo(f"Work: {_who_works(app)}")
    typer.echo("Stop: Ctrl-C")
    typer.get_text_stream("stdout").flush()


def _who_works(app: App) -> str:
    if not app.extractors and app.settings.extraction == "on":
        return "none, everything stays queued (no extractor is installed; see docs/extractors.md)"
    if not app.queue.works_in_server:
        return app.queue.workers
    count = app.settings.worker_threads
    return f"{count} {'thread' if count == 1 else 'threads'} of this process"
