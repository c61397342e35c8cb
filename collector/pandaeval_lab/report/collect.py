"""Gathers traces and their results for the report, in memory that grows by about a kilobyte per result; says what to do
where there is no score."""

from __future__ import annotations

import base64
import tempfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TextIO

import orjson

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_collector.base.untrusted.silence import says_something
from pandaeval_collector.pipeline.line.listing import shown_facts
from pandaeval_collector.pipeline.line.setup_advice import cure as capture_cure
from pandaeval_collector.show.report.detail import detail, with_results
from pandaeval_collector.show.report.index import metrics_of, session_result, tallies_of
from pandaeval_collector.show.report.text import clean_json, filled_shell
from pandaeval_collector.show.view.rates import handled
from pandaeval_collector.show.view.results import ResultView, ShownResult, shown
from pandaeval_collector.show.view.texts import many
from pandaeval_collector.show.view.unscored import CURES, unasked
from pandaeval_collector.store.listed import NO_SCORE
from pandaeval_otel.model import Kind, Trace

_NO_ANSWER = "Nothing to switch on: the run gave no answer that could be scored. Look at where it ended."
_TOOL_CALL = (
    "Nothing to switch on: the recording stops at a tool call. If the agent went on after it, its spans have "
    "to come in the same trace."
)
_NO_CONTENT = "Nothing to switch on: what was captured holds no words to compare."
_PARTS = (
    "Question and answer are there; something else that it reads is not, such as arguments and results of calls. The "
    "reason says what: switch its capture on."
)
_BLOCK = 256 * 1024
"""Bytes of JSON in a block."""
_LENIENT = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
MAX_DETAILED = 10_000
"""Of more traces than these, only the worst are shown span by span; scores and reasons are shown of all."""
_ALL_TEXTS, _MOST_OF_ONE, _LEAST_OF_ONE = 40_000_000, 200_000, 3_000
_MAX_REASONS = 3
_LOADING = (
    "Opening the report …",
    "This report needs JavaScript, which runs from this file alone. The same results as text:\n"
    "<code>pandaeval evaluate … --format table</code>.",
)
_GONE = "its spans are no longer kept (store.retention, store.max_bytes, store.keep_content)"


def cure(why: str, trace_cure: str, reads_more: bool) -> str:
    """Returns what to do about results with this ``why``. ``trace_cure``: what :func:`no_content_cure` says of the
    trace; ``reads_more``: the metric needs more of a trace than question and answer."""
    if why == "no_content":
        return trace_cure if trace_cure and (reads_more or trace_cure != _PARTS) else _NO_CONTENT
    return CURES.get(why, "")


def no_content_cure(trace: Trace) -> str:
    """Returns what to do about this trace if it has no content to score."""
    if trace.ends_in_tool_call:
        return _TOOL_CALL
    if trace.error is not None and trace.output is None and trace.input is not None:
        return _NO_ANSWER
    if trace.input is not None and trace.output is not None:
        return _PARTS if says_something(trace.input) and says_something(trace.output) else _NO_CONTENT
    speaking = (Kind.LLM, Kind.AGENT, Kind.WORKFLOW)  # their instrumentations come first
    scopes = dict.fromkeys(span.scope for span in sorted(trace.spans, key=lambda span: span.kind not in speaking))
    how = capture_cure((*scopes, *trace.dialects))
    if trace.input is None and trace.output is None:
        return f"Content capture is off in service {trace.service!r}: {how}."
    what = "no user input" if trace.input is None else "no answer"
    return f"Service {trace.service!r} captured {what}. If there was one: {how}."


def worse(known: ResultView | None, row: ResultView) -> ResultView | None:
    """Returns the more urgent result, else the known one; never one without a signal."""
    if row.signal is None or known is None or known.signal is None:
        return known if row.signal is None else row
    return row if row.urgency < known.urgency else known


def rank(results: Iterable[tuple[bool | None, float | None]], broken: int, name: str) -> tuple[bool, float, int, str]:
    """Returns a key to sort by: what failed first, then by the lowest signal (0..1, :data:`NO_SCORE` where nothing is
    scored), then by how many results and runs failed; ``name`` decides between equals. ``results``: success and signal
    of each; ``broken``: how many runs ended with an error, which is as bad as can be."""
    failures, lowest = broken, 0.0 if broken else NO_SCORE
    for success, signal in results:
        failures += success is False
        lowest = lowest if signal is None else min(lowest, signal)
    return not failures, lowest, -failures, name


class Spool:
    """Keeps JSON values, compressed, in a temporary file without a name. One thread."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._end = 0

    def put(self, value: Any) -> tuple[int, int]:
        """Stores a value, and returns the place with which :meth:`get` reads it."""
        packed = zlib.compress(orjson.dumps(value), 1)
        self._file.seek(self._end)
        self._file.write(packed)
        place = self._end, len(packed)
        self._end += len(packed)
        return place

    def get(self, place: tuple[int, int]) -> Any:
        self._file.seek(place[0])
        return orjson.loads(zlib.decompress(self._file.read(place[1])))

    def close(self) -> None:
        self._file.close()


def write_page(out: TextIO, index: Mapping[str, Any], details: Iterable[tuple[int, Mapping[str, Any]]]) -> int:
    """Writes the page, and returns its size in bytes. The page holds its data as base64 of deflated JSON: an index, and
    blocks of traces that it reads on demand. ``details``: pairs of a trace's position and details, in the
    report's order. They are read one by one, so memory does not grow with them."""
    page, _ = filled_shell("file", _LOADING, data="<!-- data -->\n")
    head, foot = page.split("<!-- data -->")
    blocks: dict[int, int] = {}
    size = 0

    def put(text: str) -> None:
        nonlocal size
        size += len(text.encode())
        out.write(text)

    def embed(name: str, data: bytes) -> None:
        packed = base64.b64encode(zlib.compress(data, 6)).decode()  # base64 cannot end the element
        put(f'<script type="application/octet-stream" id="{name}">{packed}</script>\n')

    put(head)
    for number, block in enumerate(_blocks(details)):
        blocks.update(dict.fromkeys(block, number))
        embed(f"block-{number}", b"{%s}" % b",".join(block.values()))
    traces = [{**trace, "block": blocks[at]} if at in blocks else trace for at, trace in enumerate(index["traces"])]
    embed("index", clean_json(orjson.dumps({**index, "traces": traces}, option=_LENIENT)))
    put(foot)
    return size


def _blocks(details: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[dict[int, bytes]]:
    """Yields details by position, each as a member of a JSON object, as many at a time as make a block."""
    block, size = dict[int, bytes](), 0
    for at, each in details:
        block[at] = b'"%d":%s' % (at, clean_json(orjson.dumps(each, option=_LENIENT)))
        size += len(block[at])
        if size >= _BLOCK:
            yield block
            block, size = {}, 0
    if block:
        yield block


@dataclass(frozen=True, slots=True)
class ReportOrigin:
    """Where the report comes from. ``without_agents``: traces in which no agent worked; they are not shown. ``where``:
    the only traces that were looked at, as ``--where`` says it; ``left_out``: how many others there are. ``failures``:
    groups of them, gravest first, as :func:`pandaeval_collector.store.failures.failure.shown` makes them. ``modules``:
    the user's own metrics, as :func:`registry` takes them. ``cases``: rows of the three-layer report; ``mock_calls``:
    of what mocks were asked. ``gates``: a sentence for each gate that failed."""

    sources: Sequence[str] = ()
    made_at: str = ""
    version: str = ""
    judge: str | None = None
    requests: int = 0
    items: int = 0
    unreadable: int = 0
    problems: Sequence[str] = ()
    without_agents: int = 0
    where: str = ""
    left_out: int = 0
    failures: Sequence[Mapping[str, Any]] = ()
    modules: tuple[str, ...] = ()
    cases: Sequence[Mapping[str, Any]] = ()
    mock_calls: Sequence[Mapping[str, Any]] = ()
    gates: Sequence[str] = ()


@dataclass(slots=True)
class _Unit:
    """A trace or a session with its results, and their revisions, by metric (of turns: by turn and metric). ``traces``:
    those of a session, by start. Of a trace, ``facts``: what lists show; ``cure``: what to do if it has no content;
    ``place``: where the spool has its details; ``number``: its position by start."""

    id: str
    facts: dict[str, Any] = field(default_factory=dict)
    cure: str = ""
    place: tuple[int, int] = (0, 0)
    number: int = -1
    results: dict[str, ShownResult] = field(default_factory=dict)
    revisions: dict[str, int] = field(default_factory=dict)
    traces: list[_Unit] = field(default_factory=list)

    def add(self, said: Mapping[str, Any], of: str) -> None:
        """Adds a result, given as its JSON object, about the unit ``of``. Of several revisions the newest is kept, with
        the scores of the older ones."""
        made = shown(said)
        key = made.short["metric"] if of == self.id else f"{made.short['metric']} {of}"
        known = self.results.get(key)
        if known is not None and said["revision"] < self.revisions[key]:
            known.full.setdefault("older", []).append(said["score"])
            return
        if known is not None:
            made.full["older"] = [*known.full.get("older", ()), known.short.get("score")]
        self.results[key], self.revisions[key] = made, said["revision"]

    @property
    def rank(self) -> tuple[bool, float, int, str]:
        """The key by which traces and sessions are sorted, worst first."""
        units = [self, *self.traces]
        results = (result.short for unit in units for result in unit.results.values())
        broken = sum("error" in unit.facts for unit in units)
        return rank(((each.get("success"), each.get("signal")) for each in results), broken, self.id)


@dataclass(slots=True)
class Report:
    """Builds one report: :meth:`traces` and :meth:`result` in any order, then :meth:`write` once. ``expected``: about
    how many traces will come, by which the room for texts is divided. One thread. A context manager."""

    expected: int = 1
    _rows: dict[str, _Unit] = field(default_factory=dict)
    _sessions: dict[str, _Unit] = field(default_factory=dict)
    _early: dict[str, list[tuple[Mapping[str, Any], str]]] = field(default_factory=dict)
    _spool: Spool = field(default_factory=Spool)

    def __enter__(self) -> Report:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def traces(self, traces: Iterable[Trace]) -> None:
        """Adds traces in their final form."""
        for trace in traces:
            self._take(shown_facts(trace), trace)

    def stored(self, facts: Mapping[str, Any], trace: Trace | None, results: Iterable[Mapping[str, Any]] = ()) -> None:
        """Adds a stored trace. ``facts``: what lists show of it, with its session; ``trace``: the trace read from its
        spans, ``None`` if they are gone; ``results``: JSON objects of its results."""
        row = self._take(dict(facts), trace)
        for result in results:
            row.add(result, row.id)

    def stored_session(self, session_id: str, results: Iterable[Mapping[str, Any]]) -> None:
        """Adds a session's own results, given as JSON objects."""
        for result in results:
            self._session(session_id).add(result, session_id)

    def result(self, result: Result, document: Mapping[str, Any]) -> None:
        """Adds a result and its JSON object. Of several revisions the newest is shown, with the scores of the older
        ones."""
        said, about = document, result.unit
        if about.level == "session":
            self._session(about.id).add(said, about.id)
        elif about.trace_id in self._rows:
            self._rows[about.trace_id].add(said, about.id)
        else:
            self._early.setdefault(about.trace_id, []).append((said, about.id))

    def write(self, out: TextIO, about: ReportOrigin) -> str:
        """Writes the page, and returns a sentence on its size."""
        rows = sorted(self._rows.values(), key=lambda row: (row.facts["at"], row.id))
        alone: list[_Unit] = []
        for number, row in enumerate(rows):
            row.number = number
            (self._sessions[row.facts["session"]].traces if "session" in row.facts else alone).append(row)
        order = sorted([*self._sessions.values(), *alone], key=lambda unit: unit.rank)
        detailed = [row for unit in order for row in unit.traces or [unit] if row.number >= 0][:MAX_DETAILED]
        details = (with_results(self._spool.get(row.place), row.results.values()) for row in detailed)
        page = self._index(rows, order, about)
        size = write_page(out, page, zip((row.number for row in detailed), details, strict=True))
        units = f"{many(len(self._sessions), 'session')}, {many(len(rows), 'trace')}"
        return f"{units}, {size / 1e6:.1f} MB; open it in a browser"

    def _index(self, rows: Sequence[_Unit], order: Iterable[_Unit], about: ReportOrigin) -> dict[str, Any]:
        """Returns the part of the report that is there when it opens: everything but the spans, as
        :mod:`pandaeval_collector.show.report.index` has it. ``others``: results about neither trace nor session."""
        sessions = self._sessions.values()
        results = [result for unit in (*rows, *sessions) for result in unit.results.values()]
        others = [(shown(said), of) for early in self._early.values() for said, of in early]
        places = {row.number: place for place, row in enumerate(sorted(rows, key=lambda row: row.rank))}
        positions = {id_: number for number, id_ in enumerate(self._sessions)}
        tallies = tallies_of(results)
        return {
            "about": {each.name: getattr(about, each.name) for each in fields(about) if each.name != "modules"},
            "metrics": metrics_of([*results, *(result for result, _ in others)], about.modules),
            "others": [{**result.short, **result.full, "unit": excerpt(of, 200)} for result, of in others],
            "sessions": [
                {
                    "id": excerpt(session.id, 200),
                    "traces": [row.number for row in session.traces],
                    "results": [session_result(result) for result in session.results.values()],
                }
                for session in sessions
            ],
            "traces": [
                {
                    **row.facts,
                    **({"session": positions[row.facts["session"]]} if "session" in row.facts else {}),
                    "results": [result.short for result in row.results.values()],
                    "rank": places[row.number],
                }
                for row in rows
            ],
            "order": [["t", unit.number] if unit.number >= 0 else ["s", positions[unit.id]] for unit in order],
            "unscored": _unscored([*rows, *sessions]),
            "unasked": unasked(tallies, len(rows), about.judge),
            "judged": handled(tallies),
        }

    def _take(self, facts: dict[str, Any], trace: Trace | None) -> _Unit:
        room = max(_LEAST_OF_ONE, min(_MOST_OF_ONE, _ALL_TEXTS // max(1, self.expected)))
        held = _without_spans(facts) if trace is None else detail(trace, room)
        row = _Unit(facts["id"], facts, "" if trace is None else no_content_cure(trace), self._spool.put(held))
        for said, of in self._early.pop(row.id, ()):
            row.add(said, of)
        self._rows[row.id] = row
        if facts.get("session") is not None:
            self._session(facts["session"])
        return row

    def _session(self, session_id: str) -> _Unit:
        return self._sessions.setdefault(session_id, _Unit(session_id))


def _without_spans(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what :func:`detail` would, for a trace whose spans are gone. ``facts``: what lists show of it."""
    texts = [facts[key] for key in ("in", "out") if key in facts]
    sides = [texts.index(facts[key]) if key in facts else None for key in ("in", "out")]
    return {
        "turns": [sides],
        "more_turns": 0,
        "error": None,
        "spans": [],
        "left_out": facts.get("spans", 0),
        "ends_in_tool_call": False,
        "calls": [],
        "texts": texts,
        "notes": [_GONE],
        "dialects": [],
        "models": [],
    }


def _unscored(units: Iterable[_Unit]) -> list[dict[str, Any]]:
    """Returns unscored results grouped by why and cure, largest group first."""
    found: defaultdict[tuple[str, str], list[tuple[ShownResult, _Unit]]] = defaultdict(list)
    for unit in units:
        for result in unit.results.values():
            if result.short["outcome"] == "unscored":
                why, reads_more = result.short["why"], unit.number >= 0 and result.full["by"] != "embedding"
                found[why, cure(why, unit.cure, reads_more)].append((result, unit))
    entries = (
        {
            "why": why,
            "cure": text,
            "count": len(held),
            "metrics": Counter(result.short["metric"] for result, _ in held),
            "reasons": [r for r, _ in Counter(result.short["reason"] for result, _ in held).most_common(_MAX_REASONS)],
            "services": sorted({unit.facts.get("service", "") for _, unit in held} - {""})[:5],
            "traces": sorted({unit.number for _, unit in held} - {-1}),
        }
        for (why, text), held in found.items()
    )
    return sorted(entries, key=lambda entry: -entry["count"])
