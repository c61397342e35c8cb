"""The tables of ``pandaeval passk``."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from pandaeval_collector.analysis.stats.pass_k import Bounds, PassEstimate
from pandaeval_collector.cli._output import table
from pandaeval_collector.trials.passk.figures import CaseFigures, Figures, band, mean, median, number, worst_first

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
    at, power = _three(each.at, each.at_bounds), _three(each.pow, each.pow_bounds)
    return case.id, f"{case.n}{open_}", case.c, each.k, *at, *power, band(each.label)


def _three(of: Mapping[str, PassEstimate], between: Bounds) -> tuple[str, str, str]:
    low, high = between
    left = f" [{low:.3f}, {high:.3f}]" if low is not None and high is not None and low != high else ""
    return number(of["plug_in"].value), f"{number(of['unbiased'].value)}{left}", median(of["bayesian"])
