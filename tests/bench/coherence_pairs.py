"""What coherence says of real questions with their answers, and with answers to something else.

    python tests/bench/coherence_pairs.py [EMBEDDER] [--history]

Reads the labelled sets of ``../shared/data``. Each message with its own answer is a true pair; with an answer of
another session (same set) or of another field it is a shuffled one. Bands are fitted on the first sets and on the
committed one (``embedding_set.json``), and everything is told of the others, which had no part in it:

- *AUROC by words*: of the pairs of which both texts say enough, whatever their cosine;
- *AUROC of scores*: of those that got a score;
- what was said of the pairs: *on topic*, *off topic*, *surely off*, or nothing: not applicable, or texts not known.

``--history``: with the turns before, as an instrumentation shows them that captures what a model is sent.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from bench._labelled_runs import FileRun, Input, default_evaluator  # noqa: E402
from bench._table import table  # noqa: E402
from bench.embedding_quality import SET, auroc  # noqa: E402
from pandaeval_collector.analysis.embedding import (  # noqa: E402
    Bands,
    Embedder,
    knows,
    load,
)
from pandaeval_collector.analysis.embedding.text import embed_texts  # noqa: E402
from pandaeval_collector.analysis.stats.topic import say_enough  # noqa: E402
from pandaeval_collector.base.score import Score, Unscored  # noqa: E402
from pandaeval_collector.scoring.evaluator import Evaluator  # noqa: E402
from pandaeval_collector.scoring.metric import Texts, TraceContext  # noqa: E402
from pandaeval_collector.scoring.metrics.trace.coherence import METRIC, pairs  # noqa: E402
from pandaeval_otel.model import Kind, Message, Span, Text, Trace, Turn  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
FIELDS = {
    "tau-bench": "flights",
    "bfcl": "questions",
    "tau2-pairs": "service",
    "agentrx-tau": "shop",
    "otel-captures": "demos",
}
FITTED = ("tau-bench", "bfcl")
TOLD = ("tau2-pairs", "agentrx-tau", "otel-captures")
ALIKE = {frozenset({"flights", "service"}), frozenset({"shop", "service"})}
"""Fields that share subjects: a pair of these is neither true nor of another field."""
SHUFFLED = 3000

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Exchange:
    """A message and what was answered; ``before``: the turns before it in its session; ``first``: there are none."""

    of: str
    session: str
    message: str
    answer: str
    before: tuple[tuple[str, str], ...] = ()

    def trace(self) -> Trace:
        said = [text for turn in self.before for text in turn] + [self.message]
        messages = [Message(("user", "assistant")[place % 2], (Text(text),)) for place, text in enumerate(said)]
        span = Span("a" * 32, "b" * 16, "", "chat", Kind.LLM, 0, 1, input=tuple(messages))
        return Trace("a" * 32, (span,), "b" * 16, turns=(Turn(self.message, self.answer),))


def exchanges(name: str, history: bool) -> list[Exchange]:
    """Those of a set, each text of a session once."""
    evaluator = default_evaluator()
    reader = Evaluator(evaluator.embedder, replace(evaluator.settings, enabled=frozenset({"trace.response"})))
    sessions: dict[str, list[Trace]] = defaultdict(list)
    with FileRun(reader) as run:
        for request in Input(str(DATA / name / "traces.jsonl.xz")).requests():
            run.add(request)  # type: ignore[arg-type]
        for _ in run.results(
            lambda decision: [sessions[t.session_id or t.trace_id].append(t) for t in decision.traces]
        ):
            pass
    found: dict[tuple[str, str], Exchange] = {}
    for session, members in sessions.items():
        before: list[tuple[str, str]] = []
        for turn in (turn for trace in sorted(members, key=lambda each: each.start_ns) for turn in trace.turns):
            if turn.user and turn.assistant:
                each = Exchange(name, session, turn.user, turn.assistant, tuple(before[-1:]) if history else ())
                found.setdefault((turn.user, turn.assistant), each)
                before.append((turn.user, turn.assistant))
    return [*found.values()]


def shuffled(asking: Sequence[Exchange], answering: Sequence[Exchange], same: bool) -> list[Exchange]:
    """Messages with answers of other sessions of their set (``same``), or of another field."""
    chance, found = random.Random(20), list[Exchange]()
    while len(found) < SHUFFLED:
        one, other = chance.choice(asking), chance.choice(answering)
        fields = frozenset({FIELDS[one.of], FIELDS[other.of]})
        apart = (
            one.of == other.of and one.session != other.session if same else len(fields) == 2 and fields not in ALIKE
        )
        if apart or (one.of == other.of == "bfcl" and not same and one.session != other.session):
            found.append(replace(one, answer=other.answer))
    return found


def says_enough(each: Exchange) -> bool:
    """Whether the words of both texts could tell that they are about different things, shared ones apart."""
    return any(say_enough(pair.asked, pair.answered, unlike=True) for pair in pairs(each.trace()))


class Measured:
    """The metric with one embedder and its bands, and the vectors of all texts."""

    def __init__(self, embedder: Embedder, every: Iterable[Exchange]) -> None:
        self._embedder = embedder
        wanted = [text for each in every for pair in pairs(each.trace()) for text in (pair.asked, pair.answered)]
        self._found = embed_texts(embedder, wanted)
        self.use(embedder.bands)

    def use(self, bands: Bands | None) -> None:
        found, embedder = self._found, self._embedder
        self.texts = Texts.of(found.rows, found.chunked, embedder.id, bands, knows(embedder))
        self._threshold = METRIC.threshold_for(bands)

    def says(self, each: Exchange) -> tuple[str, float | None]:
        """What it says, and the score if there is one."""
        finding = METRIC.evaluate(each.trace(), TraceContext(self.texts, self._threshold))
        if isinstance(finding, Score):
            off = "surely off" if finding.metadata.get("off_topic") else "off topic"
            return ("on topic" if finding.value >= self._threshold else off), finding.value
        return (str(finding.why) if isinstance(finding, Unscored) else "not applicable"), None

    def cosines(self, every: Iterable[Exchange]) -> Numbers:
        """Of the pairs of which both texts say enough and are known."""
        told = [pair for each in every if says_enough(each) for pair in pairs(each.trace())]
        told = [pair for pair in told if self.texts.known(pair.asked) and self.texts.known(pair.answered)]
        return np.array([self._cosine(pair.asked, pair.answered) for pair in told])

    def _cosine(self, one: str, other: str) -> float:
        rows = self.texts.rows
        return max(0.0, float(rows[one].astype(np.float64) @ rows[other]))


def fitted(sources: Sequence[tuple[Numbers, Numbers]]) -> Bands:
    """From cosines of true and of shuffled pairs by source, all sources alike. ``off``: three of four shuffled pairs
    lie below; ``cut``: fewest errors; ``on``: 98 of 100 shuffled pairs lie below; ``sure``: 99 of 100 true pairs lie
    above, in every source. Rounded to hundredths, ``sure`` down."""
    grid = np.round(np.arange(0.0, 1.0, 0.01), 2)
    correct = [sum((right >= cut).mean() + (wrong < cut).mean() for right, wrong in sources) for cut in grid]
    best = grid[np.isclose(correct, max(correct))]
    off, on = (float(np.mean([np.percentile(wrong, at) for _, wrong in sources])) for at in (75, 98))
    sure = min(float(np.percentile(right, 1)) for right, _ in sources)
    return Bands(round(off, 2), round(float(best.mean()), 2), round(on, 2), min(round(off, 2), int(100 * sure) / 100))


def committed() -> tuple[list[Exchange], list[Exchange]]:
    """True and shuffled pairs of the set in this folder."""
    content = json.loads(SET.read_text("utf-8"))
    texts = content["texts"]
    by_kind = {kind: [(texts[one], texts[other]) for one, other, _, each in content["topic"] if each == kind]
               for kind in ("named", "terse", "other")}  # fmt: skip
    true = [Exchange("", "", *pair) for pair in by_kind["named"] + by_kind["terse"]]
    return true, [Exchange("", "", *pair) for pair in by_kind["other"]]


def main(spec: str, history: bool) -> None:
    if not DATA.is_dir():
        sys.exit(f"{DATA} is not there: the labelled runs are not part of this repository")
    embedder = load(spec)
    sets = {name: exchanges(name, history) for name in FIELDS}
    every = [each for of_set in sets.values() for each in of_set]
    to_fit = [each for name in FITTED for each in sets[name]]
    sources = [(sets[name], shuffled(to_fit, to_fit, False)) for name in FITTED] + [committed()]
    asking = [each for name in TOLD for each in sets[name]]
    far, near = shuffled(asking, every, False), shuffled(asking, every, True)
    openings = {each.message for each in _firsts(asking)}
    first = [each for each in far if each.message in openings]
    measured = Measured(embedder, [*every, *far, *near, *(each for pair in sources for side in pair for each in side)])
    bands = fitted([(measured.cosines(right), measured.cosines(wrong)) for right, wrong in sources])
    print(f"{embedder.id}: fitted {bands}\nin use {embedder.bands}\n")
    measured.use(embedder.bands or bands)
    right, scores = measured.cosines(asking), _scores(measured, asking)
    for name, wrong in (("another field", far), ("another field, first messages", first), ("same set", near)):
        by_words, of_scores = auroc(right, measured.cosines(wrong)), auroc(scores, _scores(measured, wrong))
        print(f"{name:30} AUROC by words {by_words:.3f}, of scores {of_scores:.3f}")
    asked = {f"true, {name}": of_set for name, of_set in sets.items()}
    asked |= {"shuffled, another field": far, "shuffled, first messages": first, "shuffled, same set": near}
    rows = [_row(name, measured, found) for name, found in asked.items()]
    print(table("what is said of the pairs", ("pairs", "n", *_SAID), rows))


_SAID = ("on topic", "off topic", "surely off", "not applicable", "insufficient_evidence", "no_content")


def _firsts(every: Iterable[Exchange]) -> list[Exchange]:
    seen: dict[str, Exchange] = {}
    for each in every:
        seen.setdefault(each.session, each)
    return [*seen.values()]


def _scores(measured: Measured, every: Iterable[Exchange]) -> Numbers:
    return np.array([score for _, score in map(measured.says, every) if score is not None])


def _row(name: str, measured: Measured, every: Sequence[Exchange]) -> list[str]:
    said = Counter(measured.says(each)[0] for each in every)
    return [name, str(len(every)), *(f"{said[each] / len(every):.1%}" for each in _SAID)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("embedder", nargs="?", default="embedded")
    parser.add_argument("--history", action="store_true")
    asked = parser.parse_args()
    main(asked.embedder, asked.history)
