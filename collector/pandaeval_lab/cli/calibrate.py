"""``pandaeval calibrate``: judges' scores against people's labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from pandaeval_collector.analysis.stats.corrected_rate import LEAST_LABELS
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._config import opened_folder
from pandaeval_collector.cli._options import config_option, file_argument, file_option
from pandaeval_collector.cli._output import console, print_table, table
from pandaeval_collector.cli._terminal import write_json
from pandaeval_collector.show.view.texts import estimate
from pandaeval_lab.cli._names import metric_names
from pandaeval_lab.labels import calibration
from pandaeval_lab.labels.calibration import Calibration, Calibrations, from_lines, from_store
from pandaeval_lab.labels.files import read_labels
from pandaeval_lab.labels.judge_agreement import AgreementEstimate
from pandaeval_lab.replay.result_lines import result_lines


def calibrate(
    labels: Annotated[Path, file_argument("CSV or JSON lines, as `pandaeval labels import` takes them.")],
    results: Annotated[Path | None, file_option("Results as JSON lines: `pandaeval evaluate --format json`.")] = None,
    store: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Take the scores from this data directory instead.")
    ] = None,
    format_: given.Format = "table",
    config: Annotated[Path | None, config_option("Configuration file, for metrics of your own.")] = None,
) -> None:
    """Hold a judge's scores against people's verdicts: kappa, AUROC, who is passed at which threshold."""
    if (results is None) == (store is None):
        raise UserError("say where the scores are: --results FILE or --store FOLDER")
    verdicts = read_labels(labels, metric_names(config)).labels
    if results is not None:
        scores = from_lines(result_lines(results))
    else:
        assert store is not None
        with opened_folder(store) as connection:
            scores = from_store(connection, {label.unit for label in verdicts})
    calibrations = calibration.calibrate(verdicts, scores)
    found = calibrations.found
    if not found:
        raise UserError(f"no score for any of the {len(verdicts)} labels: are they of the same runs and metrics?")
    if format_ == "json":
        for each in found:
            write_json(json.dumps(calibration.as_dict(each)).encode())
    else:
        _print(calibrations)


def _print(found: Calibrations) -> None:
    out = console()
    columns = ("metric", "judge", "version", "n", "passed", "kappa", "AUROC", "threshold", "suggested")
    rows = [_row(each) for each in found.found]
    out.print(table(columns, rows, on=out, title="Judges against people (95 % intervals)"))
    for each in found.found:
        at = each.agreement
        rates = [
            (f"{cut.threshold:g}{' (now)' if cut.threshold == at.threshold else ''}", _told(cut.tpr), _told(cut.fpr))
            for cut in at.at
        ]
        head = ("threshold", f"passes of {at.passed} good", f"passes of {at.failed} bad")
        print_table(head, rates, f"{each.metric} by {each.judge}")
    for each in found.found:
        if each.agreement.n < LEAST_LABELS:
            out.print(Text(f"{each.metric}: {each.agreement.n} labels are few; the intervals say how little they show"))
        if each.tied:
            out.print(Text(f"{each.metric}: {each.tied} runs left out, which as many people passed as failed"))
    for metric, number in sorted(found.unmatched.items()):
        out.print(Text(f"{metric}: no score for {number} labelled runs"))
    out.print("suggested: where true less false positive rate is largest (Youden); metrics.thresholds sets it")


def _row(each: Calibration) -> tuple[object, ...]:
    at = each.agreement
    named = each.metric, each.judge, each.version, at.n, at.passed
    return *named, _told(at.kappa), _told(at.auroc), f"{at.threshold:g}", _told(at.suggested)


def _told(of: AgreementEstimate) -> str:
    return "unknown" if of.value is None else estimate(of.value, of.low, of.high)
