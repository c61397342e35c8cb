"""``pandaeval gate``: does a suite, or a stream of results, still do what it should?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pandaeval_collector.analysis.stats.stream import StreamGate

_Config = Annotated[Path | None, typer.Option(help="Configuration file (YAML), for gates.*.")]
_Metric = Annotated[str | None, typer.Option(help="By which metric something passes, such as trace.task_completion.")]
_Level = Annotated[float | None, typer.Option(help="Share of false alarms, 0 to 1; if not given, that of gates.*.")]


def register(app: typer.Typer) -> None:
    """Adds the command and what is below it."""
    gate = typer.Typer(help="Gates over results as JSON lines: leaves with 1 when one fails.", no_args_is_help=True)
    gate.command("compare")(compare)
    gate.command("watch")(watch)
    app.add_typer(gate, name="gate")


def compare(
    file: Annotated[Path, typer.Argument(help="Results of now, as JSON lines; - is standard input.")],
    baseline: Annotated[Path, typer.Option(help="Results of the baseline, as JSON lines.")],
    metric: _Metric = None,
    level: _Level = None,
    max_drop: Annotated[
        float | None, typer.Option(help="Largest drop of the mean success rate, 0 to 1, whether credible or not.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write the verdict to this file as JUnit XML.")
    ] = None,
    config: _Config = None,
) -> None:
    """Hold repeated trials against a baseline's: fails when the drop is more than chance explains."""
    from pandaeval_collector.base.untrusted.given_files import result_lines
    from pandaeval_collector.cli._baseline import Against, outcome, tell
    from pandaeval_collector.cli._config import resolve_config
    from pandaeval_collector.cli._junit import write_gate
    from pandaeval_collector.cli._output import OutputFile

    asked = {"gates.baseline.metric": metric, "gates.baseline.level": level, "gates.baseline.max_drop": max_drop}
    gates = resolve_config(config, asked).config.gates
    against = Against(baseline, gates.baseline, gates.max_unscored)
    for result in result_lines(file):
        against.add(result)
    verdict = against.verdict()
    tell(verdict)
    if junit is not None:
        with OutputFile(junit) as target:
            write_gate(target, outcome(verdict))
    if not verdict.passed:
        raise typer.Exit(1)


def watch(
    file: Annotated[Path, typer.Argument(help="Results as JSON lines, in their order; - is standard input.")],
    metric: _Metric = None,
    rate: Annotated[float | None, typer.Option(help="Least share, 0 to 1, that has to pass.")] = None,
    level: _Level = None,
    config: _Config = None,
) -> None:
    """Look at a stream after every result, and leave with 1 at the first alarm.

    However often it is looked at, the chance of a false alarm stays below the level: `tail -f results.jsonl | pandaeval
    gate watch - --metric trace.task_completion --rate 0.9`.
    """
    from pandaeval_collector.analysis.stats.stream import StreamGate
    from pandaeval_collector.cli._config import resolve_config

    asked = {"gates.stream.rate": rate, "gates.stream.level": level}
    stream = resolve_config(config, asked).config.gates.stream
    gate = StreamGate(stream.rate, stream.level)
    passed = 0
    for success in _verdicts(file, metric):
        passed += success
        if gate.add(float(success)):
            break
    if gate.alarmed_at is not None:
        typer.echo(f"failed: {_told(gate, passed)}", err=True)
        raise typer.Exit(1)
    typer.echo(f"no alarm: {_told(gate, passed)}", err=True)


def _verdicts(file: Path, metric: str | None) -> Iterator[bool]:
    from pandaeval_collector.base.errors import UserError
    from pandaeval_collector.base.untrusted.given_files import result_lines

    seen: str | None = None
    for result in result_lines(file):
        key = f"{result['level']}.{result['metric']}"
        if metric is not None and metric not in (key, result["metric"]):
            continue
        if seen not in (None, key):
            raise UserError(f"both {seen} and {key} are in the input: name one with --metric, level and all")
        if (success := _success(result)) is not None:
            seen = key
            yield success
    if seen is None:
        raise UserError(f"no result{f' of {metric}' if metric else ''} in the input passes or fails")


def _success(result: dict[str, Any]) -> bool | None:
    """Returns whether a result passes; ``None`` for one without a verdict, and for a later revision of a known one."""
    is_first = result.get("revision") in (None, 1)
    success = result.get("success") if is_first and result["outcome"] == "scored" else None
    return success if isinstance(success, bool) else None


def _told(gate: StreamGate, passed: int) -> str:
    when = f"after {gate.n:,} results" if gate.alarmed_at is not None else f"in {gate.n:,} results"
    return (
        f"{when}, of which {passed:,} passed ({passed / max(1, gate.n):.1%}, at least {gate.rate:.1%} should); "
        f"evidence against it {gate.e_value:.3g}, alarm from {1.0 / gate.level:.3g} on"
    )
