"""Imports every module of Nexus, whatever these import only when they need it, and whatever libraries do.

Run as a file by the Python of an installation, where nothing but Nexus and its pinned requirements can be imported.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

#: What Celery imports only when its worker starts.
OF_CELERY = (
    "celery.app.amqp",
    "celery.app.control",
    "celery.app.events",
    "celery.app.log",
    "celery.apps.worker",
    "celery.concurrency.thread",
    "celery.events.dispatcher",
    "celery.events.receiver",
    "celery.loaders.app",
    "celery.worker.autoscale",
    "celery.worker.components",
    "celery.worker.consumer.delayed_delivery",
    "celery.worker.strategy",
    "kombu.pidbox",
    "kombu.transport.redis",
)
#: What libraries import only when a server, a worker or a command needs it.
CHOSEN = (
    # NEXUS_DATABASE_URL
    "alembic.ddl.postgresql",
    "alembic.ddl.sqlite",
    "psycopg_binary",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    # NEXUS_QUEUE=celery, NEXUS_REDIS_URL
    *OF_CELERY,
    "redis.asyncio",
    # NEXUS_STORAGE=s3
    "boto3.session",
    "botocore.auth",
    "botocore.httpsession",
    "botocore.signers",
    "s3transfer",
    # NEXUS_JWKS_URL
    "cryptography.hazmat.primitives.asymmetric.ec",
    "cryptography.hazmat.primitives.asymmetric.rsa",
    "jwt.algorithms",
    "jwt.jwks_client",
    # NEXUS_LLM_BASE_URL, NEXUS_LLM_API_KEY
    "openai.resources.chat.completions",
    # nexus serve
    "python_multipart",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
    "uvicorn.protocols.websockets.auto",
    "uvloop",
    # the terminal
    "rich.progress",
    "typer.rich_utils",
)
#: What brings its own requirements: the extra `speech`, and `nexus models install`.
NOT_SHIPPED = {"av", "faster_whisper", "onnx", "onnxruntime.quantization"}


def names() -> Iterator[str]:
    """Of Nexus itself, but for what runs when it is imported."""
    root = importlib.import_module("nexus")
    yield "nexus"
    for found in pkgutil.walk_packages(root.__path__, "nexus."):
        if not found.name.endswith(".migrations.env"):
            yield found.name


def imported_by_nexus() -> set[str]:
    """Also by its functions: a setting or a document decides whether they run."""
    found = set()
    for path in Path(importlib.import_module("nexus").__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
    return found - NOT_SHIPPED


def problems() -> list[str]:
    """What can't be imported, each with the reason."""
    found = []
    for name in (*names(), *sorted(imported_by_nexus()), *CHOSEN):
        try:
            importlib.import_module(name)
        except Exception:
            found.append(f"{name}: {traceback.format_exc(limit=-1).strip().splitlines()[-1]}")
    return found


if __name__ == "__main__":
    sys.exit("\n".join(problems()) or 0)
