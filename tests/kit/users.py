"""People known to Nexus."""

from __future__ import annotations

from uuid import UUID, uuid4

from nexus.app import App
from nexus.libraries import access


def new_user(app: App) -> UUID:
    """Somebody who has signed in once, and so has a default library."""
    user = uuid4()
    with app.sessions.begin() as session:
        access.ensure_user(session, user)
    return user
