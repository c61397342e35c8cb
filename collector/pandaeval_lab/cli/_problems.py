"""Prints problems of the input and of components."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.text import Text

from pandaeval_collector.cli._output import safe
from pandaeval_otel.base.component_errors import Component, raised_text


def print_component_errors(out: Console, raised: Mapping[Component, int]) -> None:
    if raised:
        told = f"warning: components raised errors, so their results are missing: {raised_text(raised)}"
        out.print(Text(safe(told), style="yellow"))


def print_problems(out: Console, problems: Iterable[str], bad: int) -> None:
    for problem in problems:
        out.print(Text(f"warning: {safe(problem)}", style="yellow"))
    if bad > 10:
        out.print(Text(f"warning: … and {bad - 10} more", style="yellow"))
