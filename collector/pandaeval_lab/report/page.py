"""The HTML report: the live page's rows in a self-contained file."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TextIO

import orjson

from pandaeval_collector.base.result import now
from pandaeval_collector.base.runtime.version import installed_version
from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_collector.show.report.detail import content, readable_trace
from pandaeval_collector.show.report.index import LiveIndex
from pandaeval_collector.show.report.text import clean_json, filled_shell
from pandaeval_collector.show.view.rates import handled
from pandaeval_collector.show.view.results import shown
from pandaeval_collector.show.view.texts import many
from pandaeval_collector.show.view.unscored import missing
from pandaeval_collector.store.finding import Finder, every
from pandaeval_collector.store.listed import Wanted
from pandaeval_collector.store.listed_pages import Listed

MAX_DETAILED = 10_000
"""Number of worst traces that are shown with their spans."""
_ALL_TEXTS, _MOST_OF_ONE, _LEAST_OF_ONE = 40_000_000, 200_000, 3_000
_BLOCK = 256 * 1024
"""Bytes of JSON in a block."""
_LENIENT = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
_LOADING = (
    "Opening the report …",
    "This report needs JavaScript from this file. The same results as text:\n"
    "<code>pandaeval evaluate … --format table</code>.",
)


@dataclass(frozen=True, slots=True)
class ReportOrigin:
    """A report's source. ``without_agents``: number of hidden traces. ``left_out``: number outside the filter."""

    sources: Sequence[str] = ()
    made_at: str = field(default_factory=lambda: now().isoformat(timespec="seconds"))
    version: str = field(default_factory=installed_version)
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
    gates: Sequence[str] = ()


def write_report(
    out: TextIO,
    finder: Finder,
    about: ReportOrigin,
    wanted: Wanted | None = None,
    *,
    others: Iterable[tuple[str, Mapping[str, Any]]] = (),
    on_read: Callable[[int, int], None] = lambda read, total: None,
) -> str:
    """Write the sessions with a trace that fits ``wanted``, and return a sentence on the size.

    ``others``: further results. ``on_read`` gets the number of traces read, and of all.
    """
    index, rows = _collected(finder, wanted or Wanted())
    size = write_page(out, _index(index, about, others), _details(finder, rows[:MAX_DETAILED], on_read))
    sessions = len({row.session for row in rows} - {None})
    return f"{many(sessions, 'session')}, {many(len(rows), 'trace')}, {size / 1e6:.1f} MB; open it in a browser"


def _collected(finder: Finder, wanted: Wanted) -> tuple[LiveIndex, list[Listed]]:
    index, shown_rows = LiveIndex(), list[Listed]()
    for unit in every(finder.sessions, wanted):
        rows = [] if unit.worst is None else [unit.worst]
        if unit.id is not None and (session := finder.session(unit.id)) is not None:
            rows = session[1]
        if rows:
            index.unit(unit, rows)
            shown_rows += rows
    return index, shown_rows


def _index(index: LiveIndex, about: ReportOrigin, others: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    tallies, facts, beyond = index.tallies(), asdict(about), list[dict[str, Any]]()
    modules = facts.pop("modules")
    for unit, result in others:
        view = shown(result)
        beyond.append({**view.short, **view.full, "unit": excerpt(unit, 200)})
    return {
        **index.made(about.judge, modules),
        "about": facts,
        "judged": handled(tallies),
        "others": beyond,
        "unscored": missing((metric, counts.unscored) for metric, counts in tallies.items()),
    }


def _details(
    finder: Finder, rows: Sequence[Listed], on_read: Callable[[int, int], None]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    room = max(_LEAST_OF_ONE, min(_MOST_OF_ONE, _ALL_TEXTS // max(1, len(rows))))
    for position, row in enumerate(rows):
        trace = readable_trace(finder, bytes.fromhex(row.facts["id"]))
        yield position, content(trace, room, map(shown, row.results.values()))
        on_read(position + 1, len(rows))


def write_page(out: TextIO, index: Mapping[str, Any], details: Iterable[tuple[int, Mapping[str, Any]]]) -> int:
    """Write the page, and return its size in bytes."""
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
    block, size = dict[int, bytes](), 0
    for position, value in details:
        block[position] = b'"%d":%s' % (position, clean_json(orjson.dumps(value, option=_LENIENT)))
        size += len(block[position])
        if size >= _BLOCK:
            yield block
            block, size = {}, 0
    if block:
        yield block
