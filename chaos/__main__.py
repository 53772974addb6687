"""`python -m chaos`: one seeded run on real servers. The exit code is 1 if a promise was broken."""

from __future__ import annotations

import argparse
import random
import sys

from chaos.plan import Scene
from chaos.run import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument(
        "--seconds", type=float, default=120.0, help="how long things go wrong, at most an hour"
    )
    parser.add_argument("--database", choices=["postgres", "sqlite"], default="postgres")
    parser.add_argument("--queue", choices=["celery", "local"], help="celery on postgres, local on sqlite")
    parser.add_argument("--storage", choices=["local", "s3"], default="local")
    given = parser.parse_args()
    queue = given.queue or ("celery" if given.database == "postgres" else "local")
    scene = Scene(given.database, queue, given.storage)
    print(f"chaos with seed {given.seed}", flush=True)
    report = run(given.seed, min(given.seconds, 3600.0), scene)
    print(report.text)
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
