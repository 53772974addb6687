"""How well is what somebody looks for found? `python -m bench.retrieval --gate` keeps it where it is, and `--choose`
shows how the share of meaning was chosen.

Words alone, meaning alone and both, on SQLite and PostgreSQL, beside what either database ranks by itself.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import mean
from uuid import UUID, uuid4

from bench import retrieval_peers
from bench.judged import Agreement, JudgedSet, agreement, judged_sets
from bench.kept_vectors import Vectors, present_vectors
from bench.places import Place, places
from bench.scorer import NoData
from bench.table import Line, print_table
from nexus.db.session import Sessions, connect
from nexus.media.searching.indexing import unembedded_texts
from nexus.search.codes import SignCodes
from nexus.search.fusing import FoundPassage, fuse, group_items
from nexus.search.meaning import MeaningHit, find_meaning
from nexus.search.questions import parse_question
from nexus.search.terms import terms_of
from nexus.search.words import WordHit, find_words
from nexus.search.words_postgres import refresh_counts
from tests.kit.searching import SearchText, add_texts, add_vectors, everything_of_viewer

BACKENDS = ("sqlite", "postgresql")
#: nDCG@10 of words and of both, on either database.
PINNED = {"cacm": (0.5, 0.565), "cranfield": (0.375, 0.422)}
#: How much meaning has to add on average, and how far apart the databases may be.
ADDED, APART = 0.03, 0.02
SHARES = [number / 20 for number in range(21)]
FOLDS = 5


@dataclass(frozen=True)
class Answers:
    """What both ways found for each question of a set, and which text each item is."""

    judged: JudgedSet
    words: dict[str, list[WordHit]]
    meaning: dict[str, list[MeaningHit]]
    names: dict[UUID, str]

    def by_words(self) -> Agreement:
        return self._agreement(lambda key: fuse(self.words[key], []))

    def by_meaning(self) -> Agreement:
        return self._agreement(lambda key: fuse([], self.meaning[key], share=1.0))

    def by_both(self, share: float | None = None) -> Agreement:
        given = {} if share is None else {"share": share}
        return self._agreement(lambda key: fuse(self.words[key], self.meaning.get(key, []), **given))

    def _agreement(self, found: Callable[[str], list[FoundPassage]]) -> Agreement:
        orders = {
            key: [self.names[item.media_id] for item in group_items(found(key))]
            for key in self.judged.questions
        }
        return agreement(self.judged, orders)


def answers(place: Place, backend: str, judged: JudgedSet, vectors: Vectors) -> Answers:
    """Write a set into a database of its own, and ask all its questions."""
    sessions, viewer = connect(place.migrated(backend)), uuid4()
    media = add_texts(sessions, viewer, map(SearchText, judged.texts.values()))
    with sessions.begin() as session:
        refresh_counts(session)
    if vectors.embedder is not None:
        _embed(sessions, media, vectors)
    found = Answers(judged, {}, {}, dict(zip(media, judged.texts, strict=True)))
    codes, scope = SignCodes(1 << 30), everything_of_viewer(viewer)
    for key, typed in judged.questions.items():
        with sessions.read() as session:
            found.words[key] = find_words(session, scope, terms_of(session, parse_question(typed)))
            if vectors.embedder is not None:
                asked = vectors.of_question(typed)
                found.meaning[key] = find_meaning(session, scope, codes, vectors.embedder.model, asked) or []
    sessions.engine.dispose()
    return found


def _embed(sessions: Sessions, media: list[UUID], vectors: Vectors) -> None:
    assert vectors.embedder is not None
    model = vectors.embedder.model
    with sessions.read() as session:
        texts = {
            (media_id, one.id): one.text
            for media_id in media
            for one in unembedded_texts(session, media_id, model)
        }
    add_vectors(sessions, model, dict(zip(texts, vectors.of(list(texts.values())), strict=True)))


def ask(place: Place) -> list[Line]:
    vectors = present_vectors()
    lines: list[Line] = []
    added = []
    for judged in judged_sets():
        found = {backend: answers(place, backend, judged, vectors) for backend in BACKENDS}
        lines += _set_lines(place, judged, found)
        if vectors.embedder is not None:
            lines += _meaning_lines(judged, found)
            mine = found["sqlite"]
            added.append(mine.by_both().scores[0] - mine.by_words().scores[0])
    if added:
        lines.append(_difference("both ways beyond words, on average", mean(added), ADDED))
    return lines


def _set_lines(place: Place, judged: JudgedSet, found: dict[str, Answers]) -> Iterator[Line]:
    peers = {"sqlite": retrieval_peers.plain_fts5, "postgresql": retrieval_peers.ts_rank_cd}
    words = {backend: found[backend].by_words() for backend in BACKENDS}
    for backend in BACKENDS:
        peer = agreement(judged, peers[backend](place, judged))
        name = peers[backend].__name__
        yield _scores(f"words, {judged.name}, {backend}", words[backend], peer, name)
    apart = abs(words["sqlite"].scores[0] - words["postgresql"].scores[0])
    yield Line(f"words, {judged.name}, databases apart", f"{apart:.3f}", f"{APART}", apart / APART, at_most=1)


def _meaning_lines(judged: JudgedSet, found: dict[str, Answers]) -> Iterator[Line]:
    for backend, answer in found.items():
        words, both = answer.by_words(), answer.by_both()
        yield _scores(f"meaning, {judged.name}, {backend}", answer.by_meaning(), words, "words")
        yield _scores(f"both, {judged.name}, {backend}", both, words, "words", at_least=1.0)
    apart = abs(found["sqlite"].by_both().scores[0] - found["postgresql"].by_both().scores[0])
    yield Line(f"both, {judged.name}, databases apart", f"{apart:.3f}", f"{APART}", apart / APART, at_most=1)


def _scores(what: str, ours: Agreement, theirs: Agreement, name: str, at_least: float | None = None) -> Line:
    (ndcg, recall), (their_ndcg, their_recall) = ours.scores, theirs.scores
    return Line(
        f"{what}: nDCG@10 (recall@100)",
        f"{ndcg:.3f} ({recall:.3f})",
        f"{their_ndcg:.3f} ({their_recall:.3f}) {name}",
        ndcg / their_ndcg,
        at_least=at_least,
    )


def _difference(what: str, value: float, wanted: float) -> Line:
    return Line(what, f"{value:+.3f}", f"{wanted:+.3f}", value / wanted, at_least=1.0)


def choose(place: Place) -> None:
    """Choose the share of meaning on some questions, and score it on others: on those of the other sets, and on each
    fifth of all."""
    vectors = present_vectors()
    if vectors.embedder is None:
        return
    found = [answers(place, "sqlite", judged, vectors) for judged in judged_sets()]
    scored = {share: [answer.by_both(share).ndcg for answer in found] for share in SHARES}
    print("share  " + "  ".join(answer.judged.name for answer in found))
    for share, sets in scored.items():
        print(f"{share:.2f}   " + "  ".join(f"{mean(each.values()):.4f}" for each in sets))
    for number, answer in enumerate(found):
        others = [place for place in range(len(found)) if place != number]
        chosen = max(SHARES, key=lambda share: mean(mean(scored[share][place].values()) for place in others))
        kept_back = mean(scored[chosen][number].values())
        words = answer.by_words().scores[0]
        print(f"{answer.judged.name}, kept back: share {chosen:.2f} {kept_back:.4f}, words {words:.4f}")
    for fold in range(FOLDS):
        _print_fold(fold, scored, [answer.by_words().ndcg for answer in found])


def _print_fold(
    fold: int, scored: dict[float, list[dict[str, float]]], words: list[dict[str, float]]
) -> None:
    def average(sets: list[dict[str, float]], *, kept_back: bool) -> float:
        return mean(
            mean(value for place, value in enumerate(each.values()) if (place % FOLDS == fold) is kept_back)
            for each in sets
        )

    chosen = max(SHARES, key=lambda share: average(scored[share], kept_back=False))
    both, alone = average(scored[chosen], kept_back=True), average(words, kept_back=True)
    print(f"fold {fold}, kept back: share {chosen:.2f} {both:.4f}, words {alone:.4f}")


def gate(place: Place) -> int:
    """How many promises do not hold; 0 also if there are no sets here. Without a model, those about words."""
    vectors = present_vectors()
    broken: list[str] = []
    added = []
    for judged in judged_sets():
        scores = []
        for backend in BACKENDS:
            answer = answers(place, backend, judged, vectors)
            words, both = answer.by_words().scores[0], answer.by_both().scores[0]
            scores.append((words, both))
            print(f"{judged.name:10} {backend:10} words {words:.4f}, both {both:.4f}")
            broken += _broken(judged.name, words, both if vectors.embedder else None)
            added.append(both - words)
        if any(abs(a - b) > APART for a, b in zip(*scores, strict=True)):
            broken.append(f"{judged.name}: the databases are further apart than {APART}")
    if vectors.embedder and mean(added) < ADDED:
        broken.append(f"meaning adds {mean(added):.4f} on average, wanted {ADDED}")
    print("\n".join(broken))
    return len(broken)


def _broken(name: str, words: float, both: float | None) -> Iterator[str]:
    least_words, least_both = PINNED[name]
    if words < least_words:
        yield f"{name}: words {words:.4f}, wanted {least_words}"
    if both is not None and both < max(least_both, words):
        yield f"{name}: both {both:.4f}, wanted {max(least_both, words):.4f}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval", description=__doc__)
    parser.add_argument("--gate", action="store_true", help="exit with 1 where a score fell")
    parser.add_argument("--choose", action="store_true", help="choose the share of meaning again")
    given = parser.parse_args()
    try:
        with places() as place:
            if given.gate:
                return min(gate(place), 1)
            if given.choose:
                choose(place)
            else:
                print_table("retrieval", ask(place))
    except NoData as missing:
        print(missing)
    return 0


if __name__ == "__main__":
    sys.exit(main())
