"""Procrastinate: jobs and state rows in PostgreSQL, asyncio, eight jobs at once."""

from __future__ import annotations

import asyncio
import logging
import time

from procrastinate import App, PsycopgConnector
from psycopg_pool import AsyncConnectionPool

from bench.contenders import Ground, rows
from bench.places import dsn

progress = rows.progress_postgres


def fill(ground: Ground, count: int) -> None:
    rows.fill_postgres(ground, count)
    app = _app(ground)
    with app.open():
        app.schema_manager.apply_schema()
        app.configure_task("walk").batch_defer(*({"number": number} for number in range(count)))


def work(ground: Ground) -> None:
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    asyncio.run(_work(ground))


async def _work(ground: Ground) -> None:
    app = _app(ground)
    async with AsyncConnectionPool(dsn(ground.database), min_size=8, kwargs={"autocommit": True}) as pool:

        @app.task(name="walk")
        async def walk(number: int) -> None:
            async with pool.connection() as connection:
                await connection.execute(rows.BEGIN, (time.time(), number))
                await connection.execute(rows.END, (time.time(), number))

        async with app.open_async():
            await app.run_worker_async(concurrency=8)


def _app(ground: Ground) -> App:
    return App(connector=PsycopgConnector(conninfo=dsn(ground.database), min_size=8, max_size=12))
