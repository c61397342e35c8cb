"""Gathers traces and their results for the report, in memory that grows by about a kilobyte per result."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO

import orjson

from pandaeval_collector.base.result import Result
from pandaeval_collector.pipeline.line.listing import shown_facts
from pandaeval_collector.show.report.cures import no_content_cure
from pandaeval_collector.show.report.detail import detail, with_results, without_spans
from pandaeval_collector.show.report.index import ReportOrigin, index, ranked
from pandaeval_collector.show.report.results import ShownResult, shown, shown_object
from pandaeval_collector.show.report.rows import ReportSession, ReportTrace
from pandaeval_collector.show.report.shell import file_shell
from pandaeval_collector.show.report.text import clean_json
from pandaeval_lab.report.spool import Spool
from pandaeval_otel.model import Trace

# The data of a report as one HTML file that loads nothing.
#
# Data lies in the file as base64 of deflated JSON: an index that is read at once, and blocks of traces that are read
# when one of them is looked at. The page builds itself from it by ``textContent`` alone.
_BLOCK = 256 * 1024
"""Bytes of JSON in a block."""
_LENIENT = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY


def write_page(out: TextIO, index: Mapping[str, Any], details: Iterable[tuple[int, Mapping[str, Any]]]) -> int:
    """Writes the page, and returns its size in bytes. ``details``: pairs of a trace's position and details, in the
    report's order. They are read one by one, so memory does not grow with them."""
    head, foot = file_shell().split("<!-- data -->")
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


MAX_DETAILED = 10_000
"""Of more traces than these, only the worst are shown span by span; scores and reasons are shown of all."""
_ALL_TEXTS, _MOST_OF_ONE, _LEAST_OF_ONE = 40_000_000, 200_000, 3_000


@dataclass(slots=True)
class Report:
    """Builds one report: :meth:`traces` and :meth:`result` in any order, then :meth:`write` once. ``expected``: about
    how many traces will come, by which the room for texts is divided. One thread. A context manager."""

    expected: int
    _rows: dict[str, ReportTrace] = field(default_factory=dict)
    _sessions: dict[str, ReportSession] = field(default_factory=dict)
    _early: dict[str, list[ShownResult]] = field(default_factory=dict)
    _spool: Spool = field(default_factory=Spool)

    def __enter__(self) -> Report:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def traces(self, traces: Iterable[Trace]) -> None:
        """Adds traces in their final form."""
        for trace in traces:
            self._take(shown_facts(trace), no_content_cure(trace), detail(trace, self._room))

    def stored(self, facts: Mapping[str, Any], trace: Trace | None, results: Iterable[Mapping[str, Any]] = ()) -> None:
        """Adds a stored trace. ``facts``: what lists show of it, with its session; ``trace``: the trace read from its
        spans, ``None`` if they are gone; ``results``: JSON objects of its results."""
        found = without_spans(facts) if trace is None else detail(trace, self._room)
        row = self._take(dict(facts), "" if trace is None else no_content_cure(trace), found)
        for result in results:
            row.add(shown_object(result, facts["id"]))

    def stored_session(self, session_id: str, results: Iterable[Mapping[str, Any]]) -> None:
        """Adds a session's own results, given as JSON objects."""
        for result in results:
            self._session(session_id).add(shown_object(result, session_id))

    def result(self, result: Result) -> None:
        """Adds a result. Of several revisions the newest is shown, with the scores of the older ones."""
        made = shown(result)
        if result.unit.level == "session":
            self._session(result.unit.id).add(made)
        elif result.unit.trace_id in self._rows:
            self._rows[result.unit.trace_id].add(made)
        else:
            self._early.setdefault(result.unit.trace_id, []).append(made)

    def write(self, out: TextIO, about: ReportOrigin) -> int:
        """Writes the page, and returns its size in bytes."""
        rows = sorted(self._rows.values(), key=lambda row: (row.facts["at"], row.facts["id"]))
        order = ranked(rows, self._sessions)
        detailed = [row for unit in order for row in unit.rows][:MAX_DETAILED]
        for number, row in enumerate(rows):
            row.number = number
        others = [held for early in self._early.values() for held in early]
        made = index(rows, self._sessions, order, others, about)
        details = (with_results(self._spool.get(row.place), row.results.values()) for row in detailed)
        return write_page(out, made, zip((row.number for row in detailed), details, strict=True))

    @property
    def _room(self) -> int:
        """The most characters for the texts of one trace."""
        return max(_LEAST_OF_ONE, min(_MOST_OF_ONE, _ALL_TEXTS // max(1, self.expected)))

    def _take(self, facts: dict[str, Any], cure: str, found: dict[str, Any]) -> ReportTrace:
        row = ReportTrace(facts, cure, self._spool.put(found))
        for early in self._early.pop(facts["id"], ()):
            row.add(early)
        self._rows[facts["id"]] = row
        if facts.get("session") is not None:
            self._session(facts["session"])
        return row

    def _session(self, session_id: str) -> ReportSession:
        return self._sessions.setdefault(session_id, ReportSession(session_id))
