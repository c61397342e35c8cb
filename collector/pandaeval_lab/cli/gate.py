"""``pandaeval gate``: does a suite still do what it should?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pandaeval_collector.cli._config import resolve_config
from pandaeval_collector.cli._hand import config_option, file_argument, file_option
from pandaeval_lab.cli._ci import write_gate
from pandaeval_lab.cli._gates import Against, outcome, tell
from pandaeval_lab.cli._writing import output_file
from pandaeval_lab.replay.files import result_lines

gate = typer.Typer(help="Gates over results as JSON lines: leaves with 1 when one fails.", no_args_is_help=True)


@gate.command("compare")
def compare(
    file: Annotated[Path, file_argument("Results of now, as JSON lines; - is standard input.")],
    baseline: Annotated[Path, file_option("Results of the baseline, as JSON lines.")],
    metric: Annotated[
        str | None, typer.Option(help="By which metric something passes, such as trace.task_completion.")
    ] = None,
    level: Annotated[
        float | None, typer.Option(help="Share of false alarms, 0 to 1; if not given, that of gates.*.")
    ] = None,
    max_drop: Annotated[
        float | None, typer.Option(help="Largest drop of the mean success rate, 0 to 1, whether credible or not.")
    ] = None,
    junit: Annotated[Path | None, file_option("Write the verdict to this file as JUnit XML.", "--junit")] = None,
    config: Annotated[Path | None, config_option("Configuration file (YAML), for gates.*.")] = None,
) -> None:
    """Hold repeated trials against a baseline's: fails when the drop is more than chance explains."""
    asked = {"gates.baseline.metric": metric, "gates.baseline.level": level, "gates.baseline.max_drop": max_drop}
    gates = resolve_config(config, asked).config.gates
    against = Against(baseline, gates)
    for result in result_lines(file):
        against.add(result)
    verdict = against.verdict()
    tell(verdict)
    if junit is not None:
        with output_file(junit) as target:
            write_gate(target, outcome(verdict))
    if not verdict.passed:
        raise typer.Exit(1)
