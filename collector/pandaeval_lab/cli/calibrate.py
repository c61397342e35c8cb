"""``pandaeval calibrate``: compares judges' scores with people's labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._config import MetricsConfigFile, opened_folder
from pandaeval_collector.cli._options import file_argument, file_option, option
from pandaeval_lab.cli._names import config_with_trials, names_of
from pandaeval_lab.labels.calibration import calibrate as compare, from_lines, from_store, report
from pandaeval_lab.labels.files import read_labels
from pandaeval_lab.labels.judge_report import show_reports
from pandaeval_lab.replay.result_lines import result_lines


def calibrate(
    labels: Annotated[Path, file_argument("Labels as CSV or JSON lines, as for `labels import`.")],
    results: Annotated[Path | None, file_option("Results as JSON lines, from `evaluate --format json`.")] = None,
    store: Annotated[Path | None, option("Read the scores from this data directory.", metavar="FOLDER")] = None,
    format_: given.Format = "table",
    config: MetricsConfigFile = None,
) -> None:
    """Compare the judge's scores with human labels."""
    if (results is None) == (store is None):
        raise UserError("name the scores with either --results FILE or --store FOLDER")
    verdicts = read_labels(labels, names_of(config_with_trials(config))).labels
    if results is not None:
        scores = from_lines(result_lines(results))
    else:
        assert store is not None
        with opened_folder(store) as connection:
            scores = from_store(connection)
    calibrations = compare(verdicts, scores)
    found = calibrations.found
    if not found:
        raise UserError(f"none of the {len(verdicts)} labels has a score; check that runs and metrics match")
    show_reports([report(calibration) for calibration in found], format_)
    if format_ == "table":
        for metric, missing in sorted(calibrations.unmatched.items()):
            typer.echo(f"{metric}: no score for {missing} labelled runs")
        typer.echo(
            "The suggested threshold maximizes true minus false positive rate (Youden). Set it in metrics.thresholds."
        )
