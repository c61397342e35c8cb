"""Prints a drill's figures for people and CI systems, and reads those of an earlier drill."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO
from xml.etree.ElementTree import Element, SubElement

from rich.console import Console

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.given_files import read_given
from pandaeval_collector.base.untrusted.printable import for_xml
from pandaeval_collector.cli._ci import write_suites
from pandaeval_collector.cli._output import many, table
from pandaeval_collector.drill.tally import NoticedLess
from pandaeval_collector.show.report.drill import fault_rows, interval, judged_rows, percent

_TO = " … "
"""Between the ends of an interval."""


def baseline_of(path: Path) -> dict[str, Any]:
    """Reads the faults' figures from the JSON of an earlier drill. Raises ``UserError``."""
    try:
        found = json.loads(read_given(path))
        return {"faults": {**found["faults"]}}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"--baseline {path}: not what `pandaeval drill --format json` writes ({error})") from error


def print_drill(figures: Mapping[str, Any], on: Console) -> None:
    """Prints tables of faults (least noticed first), untouched runs, the judge, and faults that fit no run.
    ``figures``: the JSON object of a drill."""
    faults = {name: each for name, each in figures["faults"].items() if each["n"]}
    planted = sum(each["n"] for each in faults.values())
    runs = f"{figures['good']:,} runs that look good, of {figures['runs']:,} read"
    on.print(f"{many(planted, 'fault')}, each in a copy of one of {runs}")
    columns = ("fault", "family", "n", "right", "95 %", "failed", "cannot tell", "step", "by")
    on.print(table(columns, fault_rows(faults, _TO, 3), on=on))
    flagged = [(name, each["n"], percent(each), interval(each, _TO)) for name, each in figures["untouched"].items()]
    on.print(table(("untouched runs", "n", "failed", "95 %"), flagged, on=on))
    if "judge" in figures:
        _print_judge(figures["judge"], on)
    missing = [(name, _why(each)) for name, each in figures["faults"].items() if not each["n"]]
    if missing:
        on.print(table(("not applicable", "why"), missing, on=on))


def _print_judge(figures: Mapping[str, Any], on: Console) -> None:
    """Prints how many faulty runs each judged metric noticed, beside the metrics without a model."""
    counted = figures["copies"] - figures["not_judged"]
    cost = f", US$ {figures['cost_usd']:.4f}" if figures["cost_usd"] else ""
    title = f"{', '.join(figures['models'])} as a judge, {many(figures['copies'], 'faulty run')}{cost}"
    columns = ("judged metric", "n", "noticed", "95 %", "scored lower", "95 %", "original fails", "95 %", "not judged")
    on.print(table(columns, judged_rows(figures["metrics"], _TO), on=on, title=title))
    shares = [(name, percent(share), interval(share, _TO)) for name, share in figures["noticed"].items()]
    on.print(table((f"of {counted:,} faulty runs", "noticed", "95 %"), shares, on=on))
    if figures["not_judged"]:
        on.print(f"{many(figures['not_judged'], 'faulty run')} not judged: a call failed, or the budget ended")


def write_drill_junit(figures: Mapping[str, Any], worse: Sequence[NoticedLess], target: TextIO) -> None:
    """Writes a JUnit test case for each fault: it fails where a metric notices credibly less than before, and is
    skipped where no run could have the fault."""
    cases = []
    for row, (name, each) in zip(fault_rows(figures["faults"], _TO, 3), figures["faults"].items(), strict=True):
        case = Element("testcase", classname="pandaeval.drill", name=for_xml(name), time="0")
        if drops := [drop.told for drop in worse if drop.fault == name]:
            SubElement(case, "failure", message=for_xml("; ".join(drops)), type="noticed less")
        elif not each["n"]:
            SubElement(case, "skipped", message=for_xml(_why(each)))
        else:
            share = f"{percent(each['noticed'])} ({interval(each['noticed'], _TO)}) of {each['n']}"
            SubElement(case, "system-out").text = for_xml(f"noticed {share}: {row[-1]}")
        cases.append(case)
    write_suites(target, {"drill": cases})


def _why(each: Mapping[str, Any]) -> str:
    commonest = [*each["not_applicable"].items()][:2]
    return "; ".join(f"{why} ({count:,})" for why, count in commonest) or "no run looked good"
