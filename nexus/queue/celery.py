"""Celery on Redis. A lost message is found again by the sweep; one delivered twice is stopped by the claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import AuthenticationError

from nexus import logging
from nexus.queue import Away, Queue, Work
from nexus.settings import Settings

log = logging.get_logger(__name__)
QUEUE = "nexus"
#: Kinds of work whose task has a name of its own; its only positional argument is the id.
TASKS = {"extraction": "ingest_media"}
#: One wake-up drains everything that is due, so a long line of them tells the workers nothing new: any that still
#: waits is handled after this commit. Each costs a worker about as much as a short piece of work.
ENOUGH = 100


def make_celery(settings: Settings) -> Celery:
    """Make a Celery app from settings alone. Its tasks are in nexus.worker.tasks."""
    app = Celery("nexus", broker=settings.redis_url, set_as_current=False)
    app.conf.update(
        imports=["nexus.worker.tasks"],
        task_default_queue=QUEUE,
        task_always_eager=settings.celery_always_eager,
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=ENOUGH,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            # A request does not wait for a broker that is away; workers have their own, endless patience.
            "max_retries": 0,
            # Longer than a lease, so that a slow task is not delivered twice while its worker lives. Restored every
            # second; the default is about every hundred.
            "visibility_timeout": settings.lease_seconds * 3 + 60,
            "unacked_restore_interval": 1,
            "unacked_restore_throttle": 1,
            "socket_timeout": 10,
            "socket_connect_timeout": 5,
        },
    )
    if settings.celery_always_eager:
        # Only a worker imports the tasks by itself; without them a call by name is sent, not run.
        app.loader.import_default_modules()
    return app


class CeleryQueue(Queue):
    handles_signals = True
    workers = "done by Celery workers (nexus worker)"

    def __init__(self, app: Celery, log_level: str) -> None:
        super().__init__()
        self.app = app
        self._log_level = log_level
        #: Eager tasks run in the caller, so nobody looks for what is due again later.
        self.workers_look = self.works_elsewhere = not app.conf.task_always_eager

    def tell(self, work: Work) -> bool:
        """Send a wake-up, unless so many wait already that the workers will keep looking long after this commit."""
        name, arguments = TASKS.get(work.kind, "do_work"), [str(work.id)]
        task = self.app.signature(name, args=arguments if name in TASKS.values() else [work.kind, *arguments])
        if self.app.conf.task_always_eager:
            task.apply_async()
            return True
        with self.app.producer_pool.acquire(block=True) as producer:
            if producer.channel.client.llen(QUEUE) < ENOUGH:
                task.apply_async(producer=producer, retry=False, ignore_result=True)
        return True

    def attach(self, app: object) -> None:
        self.app.nexus = app

    def reach(self) -> None:
        """Waiting does not help against a password that Redis refuses: that error is raised unchanged."""
        with self.app.connection_for_read() as connection:
            try:
                client: Any = connection.default_channel.client
                client.ping()
            except (OperationalError, *connection.connection_errors) as error:
                cause = error.__cause__ or error
                if isinstance(cause, AuthenticationError):
                    raise cause from error
                raise Away from error

    def listen(self, wait: Callable[[], object]) -> None:  # noqa: ARG002 Celery handles signals itself
        """Run a Celery worker until SIGTERM or SIGINT. Its tasks only ring, so they need no processes."""
        worker = self.app.Worker(
            pool="threads",
            concurrency=1,
            queues=[QUEUE],
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
            loglevel=self._log_level.upper(),
        )
        worker.start()
        if worker.exitcode:
            raise SystemExit(worker.exitcode)
