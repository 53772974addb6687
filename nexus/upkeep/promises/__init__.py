"""What must be true of the rows in the database. `nexus doctor` runs a query for each promise to find offenders."""

from nexus.upkeep.promises import (
    editorial,
    feeds,
    history,
    libraries,
    media,
    recordings,
    revisions,
    search,
    shelves,
)
from nexus.upkeep.promises.promise import Promise, offenders

__all__ = ["PROMISES", "Promise", "offenders"]

PROMISES = (
    *media.PROMISES,
    *revisions.PROMISES,
    *recordings.PROMISES,
    *libraries.PROMISES,
    *shelves.PROMISES,
    *search.PROMISES,
    *feeds.PROMISES,
    *editorial.PROMISES,
    *history.PROMISES,
)
