"""Prints a drill's figures for people and CI systems, and reads those of an earlier drill."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from xml.etree.ElementTree import Element, SubElement

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.given_files import read_given
from pandaeval_collector.base.untrusted.printable import for_xml
from pandaeval_collector.cli._junit import write_suites
from pandaeval_collector.cli._output import many, table
from pandaeval_collector.drill.tally import NoticedShare

if TYPE_CHECKING:
    from rich.console import Console

    from pandaeval_collector.drill.tally import FaultTally, NoticedLess, Tally


def baseline_of(path: Path) -> dict[str, Any]:
    """Reads the faults' figures from the JSON of an earlier drill. Raises ``UserError``."""
    try:
        found = json.loads(read_given(path))
        return {"faults": {**found["faults"]}}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"--baseline {path}: not what `pandaeval drill --format json` writes ({error})") from error


def print_drill(tally: Tally, on: Console) -> None:
    """Prints tables of faults (least noticed first), untouched runs, the judge, and faults that fit no run."""
    planted = sum(each.n for each in tally.faults.values())
    on.print(
        f"{many(planted, 'fault')}, each in a copy of one of {tally.good:,} runs that look good, of {tally.runs:,} read"
    )
    rows = [_row(name, each) for name, each in tally.worst_first() if each.n]
    on.print(table(("fault", "family", "n", "right", "95 %", "failed", "cannot tell", "step", "by"), rows, on=on))
    flagged = [(metric, share.n, _percent(share), _interval(share)) for metric, share in tally.flagged.items()]
    on.print(table(("untouched runs", "n", "failed", "95 %"), flagged, on=on))
    if tally.judge is not None:
        _print_judge(tally.judge, on)
    missing = [(name, _why(each)) for name, each in tally.worst_first() if not each.n]
    if missing:
        on.print(table(("not applicable", "why"), missing, on=on))


def _print_judge(told: Mapping[str, Any], on: Console) -> None:
    """Prints how many faulty runs each judged metric noticed, beside the metrics without a model."""
    counted = told["copies"] - told["not_judged"]
    cost = f", US$ {told['cost_usd']:.4f}" if told["cost_usd"] else ""
    title = f"{', '.join(told['models'])} as a judge, {many(told['copies'], 'faulty run')}{cost}"
    rows = [
        (
            name,
            each["noticed"]["n"],
            *_two(each["noticed"]),
            *_two(each["lower"]),
            *_two(each["alarms"]),
            each["not_judged"],
        )
        for name, each in told["metrics"].items()
    ]
    columns = ("judged metric", "n", "noticed", "95 %", "scored lower", "95 %", "original fails", "95 %", "not judged")
    on.print(table(columns, rows, on=on, title=title))
    shares = [(name, *_two(share)) for name, share in told["noticed"].items()]
    on.print(table((f"of {counted:,} faulty runs", "noticed", "95 %"), shares, on=on))
    if told["not_judged"]:
        on.print(f"{many(told['not_judged'], 'faulty run')} not judged: a call failed, or the budget ended")


def _two(share: Mapping[str, Any]) -> tuple[str, str]:
    found = NoticedShare(share["hits"], share["n"])
    return _percent(found), _interval(found)


def write_drill_junit(tally: Tally, worse: Sequence[NoticedLess], target: TextIO) -> None:
    """Writes a JUnit test case for each fault: it fails where a metric notices credibly less than before, and is
    skipped where no run could have the fault."""
    cases = []
    for name, each in tally.worst_first():
        case = Element("testcase", classname="pandaeval.drill", name=for_xml(name), time="0")
        if found := [drop.told for drop in worse if drop.fault == name]:
            SubElement(case, "failure", message=for_xml("; ".join(found)), type="noticed less")
        elif not each.n:
            SubElement(case, "skipped", message=for_xml(_why(each)))
        else:
            told = f"noticed {_percent(each.noticed)} ({_interval(each.noticed)}) of {each.n}: {_by(each)}"
            SubElement(case, "system-out").text = for_xml(told)
        cases.append(case)
    write_suites(target, {"drill": cases})


def _row(name: str, each: FaultTally) -> Sequence[object]:
    found = [_percent(share) for share in (each.noticed, each.could_not_tell, each.blamed)]
    return name, each.fault.family, each.n, _percent(each.right), _interval(each.right), *found, _by(each)


def _by(each: FaultTally) -> str:
    return ", ".join(f"{metric} {hits / each.n:.0%}" for metric, hits in each.by_metric.most_common(3))


def _why(each: FaultTally) -> str:
    return "; ".join(f"{why} ({count:,})" for why, count in each.refused.most_common(2)) or "no run looked good"


def _percent(share: NoticedShare) -> str:
    return "–" if share.value is None else f"{share.value:.0%}"


def _interval(share: NoticedShare) -> str:
    return "–" if share.interval is None else f"{share.interval[0]:.0%} … {share.interval[1]:.0%}"
