"""Conversation turns in any order get the sessions of a single pass."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import Phase, example, given, settings, strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_collector.pipeline.line.facts import TraceFacts
from pandaeval_collector.pipeline.line.handover import Handed, packed, unpacked
from pandaeval_collector.pipeline.line.implied_sessions import Forward, LinkedTrace
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.line.members import packed_answer
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_collector.store import Chunk, SessionTraceRow, Store
from pandaeval_lab.replay.files import Request
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel.assembly import DueTrace
from pandaeval_otel.model import Trigger
from pandaeval_otel.normal.evidence import gather
from pandaeval_otel.normal.session import is_history
from pandaeval_otel.normal.trace import build_trace
from pandaeval_otel.wire.splitting import read_chunk, split_traces
from support.chained import turn
from support.embedder import WordEmbedder
from support.examples import examples
from support.line import Standing, ids_and_scores
from support.made_traces import MadeTrace

# The explain phase traces every line for minutes. The smallest failing example is more useful.
UNEXPLAINED = [each for each in Phase if each is not Phase.explain]
IDS = [*(f"resp_{number}" for number in range(4)), "f7d0-11"]
CONVERSATIONS = [(11,), (11, 12), (11, 12, 13)]
Part = tuple[int, int]
"""The number of a turn, and its spans so far."""


@dataclass(frozen=True)
class Turn:
    """One trace for the oracle."""

    number: int
    start: int
    gives: tuple[str, ...]
    continues: str
    session: str | None
    told: tuple[int, ...] = ()

    def made(self) -> MadeTrace:
        return turn(self.number, self.gives, self.continues, self.session, self.start, told=self.told)


@st.composite
def conversations(draw: st.DrawFn) -> list[Turn]:
    """Draw chains, forks, loops, unknown predecessors, skewed clocks and named sessions."""
    found = []
    kinds = draw(st.sampled_from(["responses", "told", "responses told"]))
    for number in range(1, draw(st.integers(1, 7)) + 1):
        gives = draw(st.lists(st.sampled_from(IDS), max_size=2, unique=True))
        continues = draw(st.sampled_from(["", *IDS]))
        session = draw(st.sampled_from([None, None, None, "named", "other"]))
        conversation = draw(st.sampled_from(CONVERSATIONS)) if "told" in kinds else ()
        if "responses" not in kinds or (conversation and draw(st.booleans())):
            gives, continues, session = [], "", None
        found.append(Turn(number, draw(st.integers(0, 9)), tuple(gives), continues, session, conversation))
    return found


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[list[Turn], list[list[Part]], list[bool]]:
    """Draw decision order, batches and restarts."""
    turns = draw(conversations())
    parts: list[Part] = []
    for each in turns:
        spans = max(1, len(each.gives)) + 1
        cut = draw(st.sampled_from([0, 0, *range(1, spans)]))
        parts += [(each.number, cut), (each.number, spans)] if cut else [(each.number, spans)]
    batches: list[list[Part]] = []
    for number, spans in draw(st.permutations(parts)):
        if any(number == other and more > spans for batch in batches for other, more in batch):
            continue  # a shorter part never follows a longer part
        if not batches or draw(st.booleans()) or any(number == other for other, _ in batches[-1]):
            batches.append([])
        batches[-1].append((number, spans))
    restarts = st.sampled_from([False, False, False, True])
    return turns, batches, draw(st.lists(restarts, min_size=len(batches), max_size=len(batches)))


@settings(max_examples=examples(160), deadline=None, phases=UNEXPLAINED)
@given(deliveries())
@example(([], [], []))
def test_traces_in_any_order_get_the_sessions_and_results_of_a_file_run(
    found: tuple[list[Turn], list[list[Part]], list[bool]],
) -> None:
    turns, batches, restarts = found
    expected = oracle(turns)
    made = {each.number: each.made() for each in turns}
    read, of_file = as_file([*made.values()])
    assert read == expected
    delivered = [[(made[number], made[number].spans[:spans]) for number, spans in batch] for batch in batches]
    with tempfile.TemporaryDirectory() as folder:
        placed, standing = decided(Path(folder), delivered, restarts)
    assert placed == {number: session for number, session in expected.items() if session is not None}
    assert {key: standing.get(key) for key in of_file} == of_file
    left = {key for key in standing if key not in of_file}
    assert {metric for _, metric in left} <= {"trace.loop_detection"}, "only results of a part in a session it has left"


@dataclass(frozen=True)
class Said:
    """A message about a trace with its known links."""

    number: int
    start: int
    gives: tuple[str, ...]
    continues: str
    session: str | None

    def of(self, example: int) -> Said:
        """Return a valid message, unique to the example."""
        gives = tuple(f"{id_}-{example}" for id_ in self.gives if id_ != self.continues)
        if self.session is not None:
            return Said(1000 * example + self.number, self.start, gives[-1:], "", f"{self.session}-{example}")
        continues = f"{self.continues}-{example}" if self.continues else ""
        return Said(1000 * example + self.number, self.start, gives, continues, None)

    @property
    def trace_id(self) -> bytes:
        return self.number.to_bytes(16, "big")

    def link(self) -> LinkedTrace:
        return LinkedTrace(self.trace_id.hex(), self.start, self.session, self.continues, self.gives)

    def handed(self) -> Handed:
        """Return the message for the session owner."""
        facts = replace(FACTS, responses=self.gives, continues=self.continues).pack()
        row = SessionTraceRow(self.trace_id, self.session or "", self.start, self.start, facts, NO_ANSWER)
        read = unpacked(packed(row, decided=True))
        assert isinstance(read, Handed)
        return read


LINKS = [f"{kind}{number}" for kind in ("resp_", "history:") for number in range(2)]
SAID = st.builds(
    Said,
    st.integers(1, 10),
    st.integers(0, 9),
    st.lists(st.sampled_from(LINKS), max_size=3, unique=True).map(tuple),
    st.sampled_from(["", *LINKS]),
    st.sampled_from([None, None, None, "named"]),
)
EXAMPLE = itertools.count(1)
FACTS = TraceFacts(
    agent="desk",
    service="",
    environment=None,
    span_id="",
    response_id="",
    sampled=True,
    fragment=False,
    digest="d",
    revision=1,
    crashed=False,
    captured=False,
    said=False,
    embedder=None,
    signals={},
)
NO_ANSWER = packed_answer("", b"", "")


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = Store(tmp_path_factory.mktemp("owner"), "off")
    yield store
    store.close()


@settings(max_examples=examples(2000), deadline=None, phases=UNEXPLAINED)
@given(st.lists(st.tuples(SAID, st.booleans()), min_size=3, max_size=12))
def test_the_last_message_on_each_trace_gives_the_session_of_a_file_run(
    owner: Store, words: list[tuple[Said, bool]]
) -> None:
    """Examples share a store. ``words``: messages, and whether each waits."""
    line, number = Line(owner.reads, Evaluator(WordEmbedder(), EvaluatorSettings())), next(EXAMPLE)
    waiting: list[Handed] = []
    messages = [each.of(number) for each, _ in words]
    for each, (_, waits) in zip(messages, words, strict=True):
        waiting.append(each.handed())
        if not waits or each is messages[-1]:
            owner.commit(line.adopt(waiting).changes).result()
            waiting = []
    last = {each.link().order: each for each in {each.number: each for each in messages}.values()}
    file = Forward((each.link() for each in last.values()), list)
    expected = {last[order].trace_id: file.session(last[order].link()) for order in sorted(last)}
    found = owner.reads.session_of([*expected])
    assert {trace_id: found.get(trace_id) for trace_id in expected} == expected


def oracle(turns: Sequence[Turn]) -> dict[int, str | None]:
    """Return the sessions by the written rule."""
    found: dict[int, str | None] = {}
    by_order = sorted(turns, key=lambda each: (each.start, each.number))

    def before(each: Turn) -> list[Turn]:
        """Return the predecessors: any for a response, a unique one for a conversation."""
        earlier = [other for other in by_order[: by_order.index(each)] if goes_on(each) in gave(other)]
        return [] if is_history(goes_on(each)) and len(earlier) > 1 else earlier

    def is_first(each: Turn) -> bool:
        return any(
            goes_on(other) in gave(each) and (not is_history(goes_on(other)) or before(other) == [each])
            for other in by_order
            if goes_on(other)
        )

    for each in by_order:
        if each.session is not None:
            found[each.number] = each.session
        elif before(each):
            found[each.number] = found[before(each)[0].number]
        elif goes_on(each) and not is_history(goes_on(each)):
            found[each.number] = goes_on(each)
        else:
            found[each.number] = gave(each)[-1] if is_first(each) else None
    return found


def goes_on(each: Turn) -> str:
    """Return the continued response, else conversation."""
    if each.session is not None:
        return ""
    if each.continues and each.continues not in each.gives:
        return each.continues
    return links(each.told)[1]


def gave(each: Turn) -> list[str]:
    """Return the responses that turns can continue."""
    kept = [id_ for at, id_ in enumerate(each.gives) if id_.startswith("resp_") or (each.continues and at == 0)]
    left = [id_ for id_ in kept if id_ != each.continues]
    if each.session is not None:
        return left[-1:]
    return left if each.continues and each.continues not in each.gives else [*links(each.told)[0], *left]


@cache
def links(told: tuple[int, ...]) -> tuple[list[str], str]:
    """Return the conversations that a turn leaves and continues."""
    if not told:
        return [], ""
    [fragment] = split_traces(turn(1, told=told).request().SerializeToString()).fragments
    trace = build_trace(gather([(False, fragment.chunk)]))
    assert trace is not None
    return [*trace.responses], trace.continues


def as_file(whole: Sequence[MadeTrace]) -> tuple[dict[int, str | None], Standing]:
    """Return sessions and results of a file run."""
    with TraceFiles(Timing().close) as run:
        for trace in whole:
            run.add(Request(False, trace.request().SerializeToString()))
        read = {int(trace.trace_id, 16): trace.session_id for trace in run.traces()}
        return read, ids_and_scores(
            [result.to_dict() for result in replay(run, Evaluator(WordEmbedder(), EvaluatorSettings()))]
        )


def decided(
    folder: Path, batches: Sequence[Sequence[tuple[MadeTrace, Sequence[Span]]]], restarts: Sequence[bool]
) -> tuple[dict[int, str], Standing]:
    """Return sessions and results after batches."""
    store = Store(folder, "off")
    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings())
    held: dict[bytes, list[int]] = {}
    results = []
    for batch, restart in zip(batches, restarts, strict=True):
        if restart:
            store.close()
            store = Store(folder, "off")
        due = [arrived(store, made, spans, held) for made, spans in batch]
        decision = Line(store.reads, evaluator).decide(due)
        store.commit(decision.changes).result()
        results += decision.results
    line = Line(store.reads, evaluator)
    closing = line.close_sessions(dict.fromkeys(sorted(store.reads.open_sessions()), Trigger.IDLE))
    results += closing.results
    placed = store.reads.session_of(list(held))
    store.close()
    return {int.from_bytes(id_, "big"): name for id_, name in placed.items()}, ids_and_scores(
        [each.to_dict() for each in results]
    )


def arrived(store: Store, made: MadeTrace, spans: Sequence[Span], held: dict[bytes, list[int]]) -> DueTrace:
    """Store a trace's spans for a decision."""
    [fragment] = split_traces(made.request(spans).SerializeToString()).fragments
    chunk = Chunk(store.next_chunk_id(), made.trace_id, False, len(fragment.items), fragment.start_ns, fragment.chunk)
    store.append([chunk]).result()
    chunks = held.setdefault(made.trace_id, [])
    chunks.append(chunk.id)
    known = frozenset(item.id for item in read_chunk(fragment.chunk, False))
    return DueTrace(
        made.trace_id,
        Trigger.ROOT_ENDED,
        True,
        False,
        tuple(chunks),
        known,
        len(known),
        0,
        len(fragment.chunk),
        len(chunks),
    )
