"""What must hold of the rows, each as one statement that finds who breaks it. `nexus doctor` asks them all."""

from nexus.upkeep.promises import editorial, history, libraries, media
from nexus.upkeep.promises.promise import Promise, offenders

__all__ = ["PROMISES", "Promise", "offenders"]

PROMISES = (*media.PROMISES, *libraries.PROMISES, *editorial.PROMISES, *history.PROMISES)
