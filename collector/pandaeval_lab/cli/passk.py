"""``pandaeval passk``: success rates of repeated trials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._options import file_argument, option, output_option
from pandaeval_collector.cli._output import console, notice, output_file, print_table, write_json_lines
from pandaeval_lab.passk.attempts import trials
from pandaeval_lab.passk.figures import (
    CASE_HEAD,
    SUITE_HEAD,
    case_row,
    figures,
    suite_objects,
    suite_row,
    task_results,
    worst_first,
)
from pandaeval_lab.replay.result_lines import result_lines


def passk(
    file: Annotated[Path, file_argument("Results of `evaluate --format json`; - is standard input.")],
    k: Annotated[str, option("Values of k, separated by commas.")] = "1,3,5",
    metric: Annotated[
        str | None, option("Metric that decides success; default: trial_correct, or the only metric in the file.")
    ] = None,
    per: Annotated[
        Literal["case", "conversation"] | None,
        option("Group trials by case or by conversation; default: by case, if the results name cases."),
    ] = None,
    format_: given.Format = "table",
    output: Annotated[Path | None, output_option("Write to this file; default: standard output.")] = None,
) -> None:
    """Compute pass@k and pass^k from repeated trials."""
    ks = numbers(k)
    results = list(result_lines(file))
    found = figures(trials(results, metric, per), ks)
    with output_file(output) as target:
        if format_ == "json":
            write_json_lines([*(each.to_dict() for each in task_results(found)), *suite_objects(found)], target)
        else:
            out, unit = console(file=target), found.trials.per
            title = f"{found.trials.metric}: all {unit}s (mean of the unbiased estimates, 95 % interval)"
            print_table((f"{unit}s", *SUITE_HEAD), map(suite_row, found.suite), title, out)
            rows = map(case_row, sorted(found.cases, key=lambda each: (*worst_first(each.case), each.k)))
            out.print()
            title = f"By {unit} (columns Bayesian: median and 95 % interval)"
            print_table((unit, *CASE_HEAD), rows, title, out)
    if found.trials.per == "conversation" and per is None:
        notice("no result names a case, so each conversation counts as one case")
    for text in found.notices:
        notice(text)


def numbers(text: str) -> Sequence[int]:
    """Return the distinct numbers in ``--k``. Raises ``UserError``."""
    try:
        found = sorted({int(each) for each in text.split(",") if each.strip()})
    except ValueError:
        found = []
    if not found or found[0] < 1 or found[-1] > 1000:
        raise UserError(f"--k {text}: write numbers of trials from 1 to 1000, such as 1,3,5")
    return found
