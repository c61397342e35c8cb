"""The table of attacks in docs/internals/reliability-tests.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

HEAD = "| attack | p99, s (before; load) | MiB | ten times: p99, s (before; load) | MiB |\n|---|---|---|---|---|"


_BEGINS, _ENDS = "<!-- attacks: python tests/lab/proofs/attacks.py --table -->\n", "\n<!-- end of attacks -->"


def with_table(page: str, lines: Iterable[Mapping[str, Any]], names: Iterable[str]) -> str:
    """Return the page with the table of attacks near a limit."""
    before, _, rest = page.partition(_BEGINS)
    head, rule, *rows = table(lines, names).splitlines()
    near = [row for row in rows if "**" in row or any(map(_near, row.split("|")))]
    return before + _BEGINS + "\n".join([head, rule, *near]) + _ENDS + rest.partition(_ENDS)[2]


def _near(cell: str) -> bool:
    """Return whether a cell shows at least 0.5 s or 400 MiB."""
    number = re.match(r" (\d+\.\d\d|\d+ $)", cell)
    return number is not None and float(number[1]) >= (0.5 if "." in number[1] else 400)


def table(lines: Iterable[Mapping[str, Any]], names: Iterable[str]) -> str:
    """Return the Markdown table, with problems in bold. ``lines``: of the ledger, oldest first."""
    newest: dict[str, dict[int, Mapping[str, Any]]] = {name: {} for name in names}
    for line in lines:
        if line["attack"] in newest:
            newest[line["attack"]][line["scale"]] = line
    rows = []
    for attack, by_scale in sorted(newest.items(), key=lambda each: each[0].casefold()):
        cells = [cell for scale in (1, 10) for cell in _cells(by_scale.get(scale))]
        rows.append(f"| {attack} | {' | '.join(cells)} |")
    return "\n".join([HEAD, *rows])


def _cells(line: Mapping[str, Any] | None) -> tuple[str, str]:
    if line is None:
        return "not run", ""
    others = [each for each in line["problems"] if "percentile" not in each and "it took" not in each]
    if "normal" not in line:
        return (_bold("; ".join(others)) if others else "passed"), ""
    p99, before = line["normal"]["p99_s"], line.get("before", {}).get("p99_s")
    p99_text = "none" if p99 is None else f"{p99:.2f}"
    p99_text = _bold(p99_text) if p99 is None or p99 > 1.0 else p99_text
    load = f"; load {line['load']:.0f}" if "load" in line else ""
    p99_text += f" ({before:.2f}{load})" if before is not None else ""
    memory = line["peak_mib"]
    return "; ".join([p99_text, *map(_bold, others)]), _bold(str(memory)) if memory > 512 else str(memory)


def _bold(text: str) -> str:
    return f"**{text.replace('|', ' ')[:200]}**"
