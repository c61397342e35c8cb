"""``pandaeval cases``: case files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._config import resolve_config
from pandaeval_collector.cli._options import argument, config_option, file_argument, option, output_option
from pandaeval_collector.cli._output import output_file, print_json, print_table
from pandaeval_collector.cli._run_place import ApiClient, with_collector_api
from pandaeval_collector.jobs.redaction import hider
from pandaeval_collector.scoring.evaluator import JudgeSettings
from pandaeval_collector.show.report.detail import describe
from pandaeval_collector.show.view.texts import estimate
from pandaeval_lab.cases.files import case_file, freeze
from pandaeval_lab.cases.model import Suite
from pandaeval_lab.cli._case_run import run
from pandaeval_lab.cli._inputs import traces_of
from pandaeval_lab.passk.attempts import trials
from pandaeval_lab.passk.figures import PromotableCase, promotable
from pandaeval_lab.replay.result_lines import result_lines

_ID = "ID of a trace or session."
_FILE = "Trace files with the run; default: read it from a running collector."
_Output = Annotated[Path | None, output_option("Write the case to this file; default: standard output.")]
_Config = Annotated[Path | None, config_option("Configuration file (YAML), for redact.")]
Runs = list[dict[str, Any]]
"""Traces as in ``pandaeval inspect --format json``, in order."""

cases = typer.Typer(help="Test an agent on cases with expected behaviour.", no_args_is_help=True)
cases.command("run")(run)


@cases.command("schema")
def schema() -> None:
    """Print the JSON schema of case files."""
    typer.echo(json.dumps(Suite.model_json_schema(), indent=2))


@cases.command("promote")
def promote(
    results: Annotated[Path, file_argument("Results of repeated trials, from `evaluate --format json`.")],
    k: Annotated[int, option("Number of trials in a row that must pass.", "-k", "--k", min=1, max=1000)] = 3,
    least: Annotated[
        float, option("Minimum lower end of the interval of pass^k.", min=0.0, max=1.0, metavar="0..1")
    ] = 0.7,
    format_: given.Format = "table",
) -> None:
    """Propose reliable capability cases for the regression suite."""
    proposals = promotable(trials(result_lines(results), per="case"), k, least)
    if format_ == "json":
        print_json([proposal.to_dict() for proposal in proposals])
    else:
        print_table(("case", "passed", f"pass^{k} (95 %)", f"at least {least:g}"), map(_promotion_row, proposals))


def _promotion_row(proposal: PromotableCase) -> tuple[str, str, str, str]:
    case, power = proposal.case, proposal.power
    shown = estimate(power.median, power.ci_low, power.ci_high, ".3f")
    return case.id, f"{case.c} of {case.n + case.undetermined}", shown, "promote" if proposal.steady else "no"


@cases.command("from-trace")
@with_collector_api
def from_trace(
    id_: Annotated[str, argument(_ID, metavar="ID")],
    file: Annotated[list[str] | None, option(_FILE)] = None,
    case: Annotated[str | None, option("ID of the case; default: made from the ID of the run.")] = None,
    output: _Output = None,
    config: _Config = None,
    *,
    api: ApiClient,
) -> None:
    """Write a case from a recorded run, without secrets.

    You fill in the expected behaviour."""
    runs: Runs | None
    if file:
        wanted = (trace for trace in traces_of(file) if id_.lower() == trace.trace_id or id_ == trace.session_id)
        runs = [describe(trace) for trace in wanted]
        if not runs:
            raise UserError(f"{id_}: no trace or session in the files has this ID; `pandaeval inspect` lists them")
    else:
        is_trace = len(id_) == 32 and all(sign in "0123456789abcdef" for sign in id_.lower())
        runs = kept(api, [id_.lower()] if is_trace else members(api, id_))
        if runs is None:
            raise UserError(f"{id_}: its spans are no longer stored (store.keep_content, store.retention)")
    write_case(runs, id_, case or f"frozen-{id_[:32]}", config, output)


@cases.command("from-failure")
@with_collector_api
def from_failure(
    group: Annotated[str, argument("ID of an incident from `pandaeval failures`.")],
    case: Annotated[str | None, option("ID of the case; default: made from the ID of the incident.")] = None,
    output: _Output = None,
    config: _Config = None,
    *,
    api: ApiClient,
) -> None:
    """Write a regression case from an incident.

    The case repeats the newest stored run of the incident, up to the failure.

    A trial fails if it has the finding of the incident again.
    """
    found = api.get(f"/incidents/{quote(group, safe='')}")
    absent = {name: found[name] for name in ("metric", "label", "reason")}
    for example in found["examples"]:
        session, last = example["session_id"], example["trace_id"]
        runs = kept(api, [last] if session is None else _up_to(members(api, session), last))
        if runs is not None:
            return write_case(runs, found["id"], case or f"failure-{found['id']}", config, output, absent)
    raise UserError(
        f"{group}: the spans of its {len(found['examples'])} newest failures are gone "
        "(store.keep_content, store.retention)"
    )


def write_case(
    runs: Runs,
    id_: str,
    case: str,
    config: Path | None,
    output: Path | None,
    absent: Mapping[str, str] | None = None,
) -> None:
    """Write a run's case without secrets. Raises ``UserError`` without captured content."""
    hide = redactor(config)
    try:
        hidden = {name: hide(text) for name, text in absent.items()} if absent else None
        made = freeze(runs, case, absent=hidden, hide=hide)
    except ValueError as error:
        raise UserError(f"{id_}: {error}") from error
    with output_file(output) as target:
        target.writelines(case_file([made]))


def redactor(config: Path | None) -> Callable[[str], str]:
    """Return the function that removes secrets and configured personal data from a text."""
    named = resolve_config(config).config.redact
    hide = hider(JudgeSettings("", secrets=True, pii=named.pii, custom=named.custom))
    assert hide is not None
    return hide


def members(api: ApiClient, session_id: str) -> list[str]:
    return [member["trace_id"] for member in api.get(f"/sessions/{quote(session_id, safe='')}")["members"]]


def kept(api: ApiClient, trace_ids: Sequence[str]) -> Runs | None:
    runs = [api.get(f"/traces/{id_}")["understood"] for id_ in trace_ids]
    return None if None in runs else runs


def _up_to(trace_ids: Sequence[str], last: str) -> list[str]:
    return [*trace_ids[: trace_ids.index(last) + 1]] if last in trace_ids else [last]
