"""pgqueuer: jobs and state rows in PostgreSQL, asyncio, batches of its default size."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

import psycopg
from pgqueuer import QueueManager
from pgqueuer.db import PsycopgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from psycopg_pool import AsyncConnectionPool

from bench.contenders import Ground, rows
from bench.places import dsn

progress = rows.progress_postgres


class Driver(PsycopgDriver):
    """Listens on a connection of its own: pgqueuer's driver otherwise keeps queries waiting while it listens."""

    def __init__(self, queries: psycopg.AsyncConnection, notices: psycopg.AsyncConnection) -> None:
        super().__init__(queries)
        self._ears = PsycopgDriver(notices)

    async def add_listener(self, channel: str, callback: Callable[[str], None]) -> None:
        await self._ears.add_listener(channel, callback)


def fill(ground: Ground, count: int) -> None:
    rows.fill_postgres(ground, count)
    asyncio.run(_fill(ground, count))


async def _fill(ground: Ground, count: int) -> None:
    async with await psycopg.AsyncConnection.connect(dsn(ground.database), autocommit=True) as connection:
        queries = Queries(PsycopgDriver(connection))
        await queries.install()
        await queries.enqueue(
            ["walk"] * count, [str(number).encode() for number in range(count)], [0] * count
        )


def work(ground: Ground) -> None:
    logging.getLogger("pgqueuer").setLevel(logging.WARNING)
    asyncio.run(_work(ground))


async def _work(ground: Ground) -> None:
    address = dsn(ground.database)
    async with (
        await psycopg.AsyncConnection.connect(address, autocommit=True) as queries,
        await psycopg.AsyncConnection.connect(address, autocommit=True) as notices,
        AsyncConnectionPool(address, min_size=8, kwargs={"autocommit": True}) as pool,
    ):
        manager = QueueManager(Queries(Driver(queries, notices)))

        @manager.entrypoint("walk")
        async def walk(job: Job) -> None:
            number = int(job.payload or b"")
            async with pool.connection() as own:
                await own.execute(rows.BEGIN, (time.time(), number))
                await own.execute(rows.END, (time.time(), number))

        await manager.run()
