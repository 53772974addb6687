"""How soon are there results after the last key? In a browser, on the search page of a library of 100,000 chunks, with
the model that Nexus makes.

`python -m bench.as_you_type 20000` asks the same of a smaller one.
"""

from __future__ import annotations

import sys
from itertools import islice
from statistics import median
from uuid import UUID

from playwright.sync_api import Page, sync_playwright
from sqlalchemy import text

from bench.over_http import nexus_server
from bench.places import Place, places
from bench.scorer import NoData
from bench.search_corpus import DIMENSION, OF_ITEM, bench_questions, bench_texts, write_bench_vectors
from bench.searching import CHUNKS
from bench.table import Line, print_table
from nexus.db.session import Statement, connect
from nexus.embed.installed import MODEL, find_installed
from nexus.settings.local_secrets import read_or_make
from nexus.web.http import cookies
from tests.kit.browser import launch
from tests.kit.searching import SearchText, add_texts
from tests.kit.sign_ins import session_key

QUESTIONS = 30
#: Between two keys of somebody who types fast, in milliseconds.
BETWEEN_KEYS = 90
WITHIN = 100.0

#: The time from the last key to the first result of the whole question, both as the page sees them.
WATCH = """(question) => ({ took: new Promise((found) => {
  const field = document.getElementById("search");
  let last = 0;
  field.addEventListener("input", () => { last = performance.now(); }, true);
  const look = () => {
    const shown = document.getElementById("found");
    if (field.value !== question || shown?.dataset.asked !== question || !shown.querySelector("[data-hit]")) return;
    watcher.disconnect();
    requestAnimationFrame(() => found(performance.now() - last));
  };
  const watcher = new MutationObserver(look);
  watcher.observe(document.body, { childList: true, subtree: true, attributes: true });
}) })"""

_WHOLE = Statement(
    text(
        "INSERT INTO vector_sets (model, dimension, begun_at, whole_at)"
        " VALUES (:model, :dimension, '2026-01-01 00:00:00.000000', '2026-01-01 00:00:00.000000')"
    )
)


def ask(place: Place, many: int = CHUNKS) -> list[Line]:
    if find_installed() is None:
        raise NoData("the model is not installed: nexus models install")
    folder, url = place.folder / f"typing-{many}", place.migrated("sqlite")
    folder.mkdir()
    questions, cookie = _filled(url, UUID(str(read_or_make(folder)["local_owner"])), many)
    # Items of the bench have no source that a worker could read.
    with nexus_server(url, folder, NEXUS_EMBED="local", NEXUS_EXTRACTION="off") as server:
        address = f"http://127.0.0.1:{server.port}"
        with sync_playwright() as playwright, launch(playwright) as browser, browser.new_context() as context:
            context.add_cookies([{"name": cookies.SESSION, "value": cookie, "url": address}])
            page = context.new_page()
            page.goto(f"{address}/find")
            waits = [_typed(page, question) for question in questions]
    waits = sorted(waits[1:])  # the first one starts the model and reads all vectors
    return [
        Line(
            f"first results after the last key, p50, {many:,} chunks",
            f"{median(waits):.0f} ms",
            f"{WITHIN:.0f} ms",
            median(waits) / WITHIN,
            at_most=1,
        ),
        Line("p95", f"{waits[int(len(waits) * 0.95)]:.0f} ms", "", waits[int(len(waits) * 0.95)] / WITHIN),
    ]


def _filled(url: str, owner: UUID, many: int) -> tuple[list[str], str]:
    """Write the library; return what to ask, and the cookie of a browser that is signed in."""
    sessions = connect(url)
    texts = list(islice(bench_texts(), many // OF_ITEM))
    add_texts(sessions, owner, (SearchText(one, title=one.partition(".")[0]) for one in texts))
    write_bench_vectors(sessions, MODEL)
    with sessions.begin() as session:
        session.run(_WHOLE, model=MODEL, dimension=DIMENSION)
    cookie = session_key(sessions, owner)
    sessions.dispose()
    return bench_questions(texts)[:QUESTIONS], cookie


def _typed(page: Page, question: str) -> float:
    field = page.get_by_role("searchbox")
    field.fill("")
    waits = page.evaluate_handle(WATCH, question)
    field.press_sequentially(question, delay=BETWEEN_KEYS)
    return float(waits.evaluate("found => found.took"))


def main() -> None:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else CHUNKS
    with places() as place:
        print_table(f"as you type, {many:,} chunks", ask(place, many))


if __name__ == "__main__":
    main()
