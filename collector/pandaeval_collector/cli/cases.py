"""``pandaeval cases``: case files, by which trials are graded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
import yaml

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.given_files import result_lines
from pandaeval_collector.cli import _case_runs
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._config import resolve_config
from pandaeval_collector.cli._output import OutputFile, console, many, print_json, safe, table
from pandaeval_collector.cli._run_place import Api, at_collector
from pandaeval_collector.scoring.cases.files import read_suite
from pandaeval_collector.scoring.cases.graders import doubts
from pandaeval_collector.scoring.cases.model import Suite
from pandaeval_collector.trials.passk.attempts import trials
from pandaeval_collector.trials.passk.figures import between
from pandaeval_collector.trials.passk.promoting import promotable, saturation

_ID = "Id of a trace, or of a session with all its traces."
_FILE = "Take the run from these files, as for evaluate, instead of a running collector."


cases = typer.Typer(help="Cases with a reference: what an agent is to do.", no_args_is_help=True)


@cases.command("schema")
def schema() -> None:
    """Print the JSON schema of case files."""
    typer.echo(json.dumps(Suite.model_json_schema(), indent=2))


@cases.command("check")
def check(
    files: Annotated[list[Path], typer.Argument(help="Case files (YAML or JSON).")],
    config: Annotated[Path | None, typer.Option(help="Configuration file, for metrics of your own.")] = None,
) -> None:
    """Say of case files whether they can be used, and what they hold. Leaves with 2 for the first that cannot."""
    modules = resolve_config(config).config.metrics.modules
    for path in files:
        suite = read_suite(path, modules)
        kinds = [case.kind for case in suite.cases]
        left_open = [case.id for case in suite.cases if case.open]
        told = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        more = f"; left open: {', '.join(left_open[:10])}" if left_open else ""
        typer.echo(safe(f"{path}: {told}{more}"))
        for line in doubts(suite):
            typer.echo(safe(f"notice: {path}: {line}"), err=True)


@cases.command("promote")
def promote(
    results: Annotated[
        Path, typer.Argument(help="Results of repeated trials as JSON lines: `pandaeval evaluate --format json`.")
    ],
    cases: Annotated[Path | None, typer.Option(help="The case file, of which -o writes the proposed ones.")] = None,
    k: Annotated[int, typer.Option("-k", "--k", min=1, max=1000, help="So many trials in a row have to pass.")] = 3,
    least: Annotated[
        float, typer.Option(min=0.0, max=1.0, metavar="0..1", help="pass^k, by the lower end of its interval.")
    ] = 0.7,
    format_: given.Format = given.TABLE,
    output: Annotated[Path | None, typer.Option(help="Write the proposed cases, as regression cases.")] = None,
) -> None:
    """Propose capability cases that pass steadily for the regression suite, and say how saturated the suite is."""
    if (output is None) != (cases is None):
        raise UserError("--cases and --output go together: the proposed cases of that file are written to this one")
    found = promotable(trials(result_lines(results), per="case"), k, least)
    if format_ is given.RunFormat.json:
        print_json([each.to_dict() for each in found])
    elif found:
        out = console()
        rows = [
            (
                each.case.id,
                f"{each.case.c} of {each.case.n + each.case.undetermined}",
                between(each.power.median, each.power.ci_low, each.power.ci_high),
                "promote" if each.steady else "no" if each.more is None else f"after {each.more} more that pass",
            )
            for each in found
        ]
        out.print(table(("case", "passed", f"pass^{k} (95 %)", f"at least {least:g}"), rows, on=out))
    typer.echo(saturation(found), err=format_ is given.RunFormat.json)
    if output is not None and cases is not None:
        ids = {each.case.id for each in found if each.steady}
        kept = [case for case in read_suite(cases).cases if case.id in ids]
        told = [{**case.model_dump(mode="json", exclude_unset=True), "kind": "regression"} for case in kept]
        with OutputFile(output) as target:
            target.write(yaml.safe_dump({"cases": told}, sort_keys=False, allow_unicode=True, width=110))
        typer.echo(f"{output}: {many(len(told), 'regression case')}; take them out of {cases}", err=True)


@cases.command("from-trace")
@at_collector
def from_trace(
    id_: Annotated[str, typer.Argument(metavar="ID", help=_ID)],
    file: Annotated[list[str] | None, typer.Option(help=_FILE)] = None,
    case: Annotated[str | None, typer.Option(help="Id of the case; else made of the id of the run.")] = None,
    description: Annotated[str, typer.Option(help="What went wrong, for people.")] = "",
    output: Annotated[Path | None, typer.Option(help="Write the case to this file instead of standard output.")] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file (redact).")] = None,
    *,
    api: Api,
) -> None:
    """Make a case of a recorded run, without secrets; what the agent should have done is left for you to fill in."""
    if file:
        runs = _case_runs.run_in_files(id_, file)
    else:
        with api:
            runs = _case_runs.run_at_collector(id_, api)
    _case_runs.write_case(runs, id_, case or f"frozen-{id_[:32]}", description, config, output)


@cases.command("from-failure")
@at_collector
def from_failure(
    group: Annotated[str, typer.Argument(help="Id of a group of failures, as GET /api/v1/failures lists them.")],
    file: Annotated[list[str] | None, typer.Option(help=_FILE)] = None,
    results: Annotated[
        Path | None, typer.Option(help="With --file: what evaluate --format json said of these files.")
    ] = None,
    case: Annotated[str | None, typer.Option(help="Id of the case; else made of the id of the group.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write the case to this file instead of standard output.")] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file (redact).")] = None,
    *,
    api: Api,
) -> None:
    """Make a regression case of a group of failures: of the newest run of it that is kept, up to where it failed."""
    if (file is None) != (results is None):
        raise UserError("--file and --results go together: a group is known by the results of a file")
    if file is not None and results is not None:
        title, runs = _case_runs.failure_in_files(group, results, file)
    else:
        with api:
            title, runs = _case_runs.failure_at_collector(group, api)
    _case_runs.write_case(runs, group, case or f"failure-{group[:32]}", title, config, output)
