"""`python -m bench [name…]`: ask the named questions, or all of them."""

from __future__ import annotations

import argparse
import time

from bench import (
    articles,
    as_you_type,
    authored,
    editorial,
    embedding,
    events,
    fairness,
    feeds,
    importing,
    over_http,
    parsing,
    quality,
    retrieval,
    scale,
    searching,
    speech,
    startup,
    throughput,
    transition,
    uploading,
)
from bench.places import Place, places
from bench.scorer import NoData
from bench.table import print_table
from nexus import logging

QUESTIONS = {
    "transition": transition.ask,
    "throughput": throughput.ask,
    "scale": scale.ask,
    "http": over_http.ask,
    "events": events.ask,
    "shares": fairness.ask,
    "upload": uploading.ask,
    "parser": parsing.ask,
    "articles": articles.ask,
    "jobs": editorial.ask,
    "imports": importing.ask,
    "feeds": feeds.ask,
    "quality": quality.ask,
    "authored": authored.ask,
    "retrieval": retrieval.ask,
    "searching": searching.ask,
    "typing": as_you_type.ask,
    "embedding": embedding.ask,
    "speech": speech.ask,
    "startup": startup.ask,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(QUESTIONS))
    names = parser.parse_args().names or list(QUESTIONS)
    unknown = sorted(set(names) - set(QUESTIONS))
    if unknown:
        parser.error(f"no question is called {', '.join(unknown)}; there are {', '.join(QUESTIONS)}")
    # No log lines between the figures, from Nexus or its peers.
    logging.configure(json=True, level="warning")
    with places() as place:
        for name in names:
            _answer(name, place)


def _answer(name: str, place: Place) -> None:
    began = time.monotonic()
    try:
        lines = QUESTIONS[name](place)
    except NoData as missing:
        print(f"{name}: {missing}")
        return
    print_table(f"{name} ({time.monotonic() - began:.0f} s)", lines)


if __name__ == "__main__":
    main()
