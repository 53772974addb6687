"""The pages: server-rendered, with a session cookie."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
