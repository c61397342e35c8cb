"""The tables of ``pandaeval passk``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandaeval_collector.cli._output import table
from pandaeval_collector.trials.passk.figures import band, mean, three, worst_first

if TYPE_CHECKING:
    from rich.console import Console

    from pandaeval_collector.trials.passk.figures import CaseFigures, Figures

_HEAD = ("trials", "passed", "k", "pass@k plug-in", "unbiased", "Bayesian", "pass^k plug-in", "unbiased", "Bayesian")


def print_figures(found: Figures, out: Console) -> None:
    """Prints the figures of the suite, then those of its cases, least reliable first."""
    many, one = ("cases", "case") if found.trials.per == "case" else ("conversations", "conversation")
    suite = [
        (f"{each.at.cases} of {each.at.of}", each.k, mean(each.at), mean(each.pow), band(each.label))
        for each in found.suite
    ]
    title = f"{found.trials.metric}: all {many} (mean of the unbiased estimates, 95 % interval)"
    out.print(table((many, "k", "pass@k", "pass^k", "assessment"), suite, on=out, title=title))
    rows = [_row(each) for each in sorted(found.cases, key=lambda each: (*worst_first(each.case), each.k))]
    out.print()
    title = f"By {one} (Bayesian: median and 95 % interval)"
    out.print(table((one, *_HEAD, "assessment"), rows, on=out, title=title))


def _row(each: CaseFigures) -> tuple[object, ...]:
    case = each.case
    open_ = f" (+{case.undetermined} undetermined)" if case.undetermined else ""
    at, power = three(each.at, each.at_bounds), three(each.pow, each.pow_bounds)
    return case.id, f"{case.n}{open_}", case.c, each.k, *at, *power, band(each.label)
