"""What a question means, as a vector, if a model can say so in time. No transaction may be open meanwhile."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from nexus import logging
from nexus.errors import EmbeddingFailed
from nexus.media.workbench import Tools
from nexus.search.finding import AskedMeaning

log = logging.get_logger(__name__)

#: How long somebody who searches waits for the model; then words alone have to do.
QUERY_SECONDS = 1.5
#: So many questions wait for the model at once. Further ones are answered by words alone.
MOST_ASKING = 8
_places = threading.BoundedSemaphore(MOST_ASKING)


def embed_question(tools: Tools, text: str) -> AskedMeaning | None:
    """Return what a question means; None if there is no model, or it fails, or takes too long."""
    embedder = tools.embedder
    if embedder is None or embedder.missing is not None or not text.strip():
        return None
    if not _places.acquire(blocking=False):
        return None
    answered: Future[bytes] = Future()

    def ask() -> None:
        try:
            answered.set_result(embedder.embed_query(text))
        except BaseException as error:
            answered.set_exception(error)
        finally:
            _places.release()

    # Not a pool: its threads would keep the process from ending while a server on the network is slow.
    threading.Thread(target=ask, name="question", daemon=True).start()
    try:
        return AskedMeaning(tools.codes, embedder.model, answered.result(QUERY_SECONDS))
    except (EmbeddingFailed, TimeoutError) as error:
        log.warning("question_not_embedded", reason=type(error).__name__)
        return None
