"""Markdown tables of the documentation."""

from __future__ import annotations

from collections.abc import Sequence


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a titled table, with three significant digits."""
    lines = [f"\n**{title}**\n", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines.extend("| " + " | ".join(_cell(value) for value in row) + " |" for row in rows)
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
