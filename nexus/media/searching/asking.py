"""What a question means, as a vector, if a model can say so in time. No transaction may be open meanwhile."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from nexus import logging
from nexus.db.session import Session
from nexus.embed import Embedder
from nexus.errors import EmbeddingFailed
from nexus.media.searching.embedding import present_embedder
from nexus.media.searching.vectors import searched_set, vector_sets_of
from nexus.media.workbench import Tools
from nexus.search.finding import AskedMeaning

log = logging.get_logger(__name__)

#: How long somebody who searches waits for the model; then words alone have to do.
QUERY_SECONDS = 1.5
#: How many questions may wait for the model at once. Others are answered by words alone.
MOST_ASKING = 8
_places = threading.BoundedSemaphore(MOST_ASKING)


def embed_question(tools: Tools, text: str) -> AskedMeaning | None:
    """Return what a question means; None if there is no model, or it fails, or takes too long."""
    if not text.strip():
        return None
    for embedder in _askable(tools):
        vector = _asked(embedder, text)
        if vector is not None:
            return AskedMeaning(tools.codes, embedder.model, vector)
    return None


def searched_model(tools: Tools, session: Session) -> str | None:
    """Return the name of the model whose vectors are searched; None if there is none at the moment.

    After a change of the model, that is the earlier one until the vectors of the present one are complete.
    """
    present = present_embedder(tools)
    if present is None:
        return None
    sets = vector_sets_of(session)
    tools.codes.keep_only({present.model, *(one.model for one in sets)})
    serving = searched_set(sets, present.model)
    return present.model if serving is None else serving.model


def _askable(tools: Tools) -> list[Embedder]:
    """The model whose vectors are searched, if it can still be asked, then the present one."""
    present = present_embedder(tools)
    if present is None:
        return []
    with tools.sessions.read() as session:
        model = searched_model(tools, session)
    if model is None or model == present.model or tools.earlier is None:
        return [present]
    earlier = tools.earlier.find(model)
    return [present] if earlier is None or earlier.missing is not None else [earlier, present]


def _asked(embedder: Embedder, text: str) -> bytes | None:
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
        return answered.result(QUERY_SECONDS)
    except (EmbeddingFailed, TimeoutError) as error:
        log.warning("question_not_embedded", reason=type(error).__name__)
        return None
