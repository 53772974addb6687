"""Celery on Redis. A lost message is found again by the sweep; one delivered twice is stopped by the claim."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import AuthenticationError

from nexus import logging
from nexus.queue import Away, Queue
from nexus.settings import Settings

log = logging.get(__name__)
QUEUE = "nexus"


def create(settings: Settings) -> Celery:
    """A Celery app from settings alone; its tasks are in nexus.worker.tasks."""
    app = Celery("nexus", broker=settings.redis_url, set_as_current=False)
    app.conf.update(
        imports=["nexus.worker.tasks"],
        task_default_queue=QUEUE,
        task_always_eager=settings.celery_always_eager,
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=4,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            # A request does not wait for a broker that is away; workers have their own, endless patience.
            "max_retries": 0,
            # Longer than a lease, so that a slow task is not delivered twice while its worker lives;
            # restored every second, where the default looks only every hundred seconds or so.
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
    workers_look = False
    works_elsewhere = True

    def __init__(self, app: Celery) -> None:
        super().__init__()
        self.app = app

    def tell(self, media_id: UUID, request_id: str | None) -> bool:
        self.app.signature("ingest_media", args=[str(media_id), request_id]).apply_async(
            retry=False, ignore_result=True
        )
        return True

    def attach(self, app: object) -> None:
        self.app.nexus = app

    def reach(self) -> None:
        """A password that Redis refuses is no matter of waiting: that is raised as it is."""
        with self.app.connection_for_read() as connection:
            try:
                client: Any = connection.default_channel.client
                client.ping()
            except (OperationalError, *connection.connection_errors) as error:
                cause = error.__cause__ or error
                if isinstance(cause, AuthenticationError):
                    raise cause from error
                raise Away from error

    def idle(self) -> bool:
        """A broker that can't be asked, for whatever reason, is not idle."""
        if self.app.conf.task_always_eager:
            return True
        try:
            with self.app.connection_for_read() as connection:
                client: Any = connection.default_channel.client
                return bool(client.llen(QUEUE) == 0)
        except Exception as error:
            log.warning("broker_not_asked", reason=type(error).__name__)
            return False
