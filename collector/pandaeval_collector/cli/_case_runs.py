"""The runs that cases are made of: by their id, or of a group of failures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.given_files import result_lines
from pandaeval_collector.cli._config import resolve_config
from pandaeval_collector.cli._inputs import requests
from pandaeval_collector.cli._output import OutputFile
from pandaeval_collector.cli._run_place import Api
from pandaeval_collector.jobs.job_traces import hider
from pandaeval_collector.runs.trace_files import TraceFiles
from pandaeval_collector.scoring.cases.files import freeze, to_yaml
from pandaeval_collector.scoring.evaluator import JudgeSettings
from pandaeval_collector.show.report.inspection import describe
from pandaeval_otel.model import Trace

Runs = list[dict[str, Any]]
"""Traces as ``pandaeval inspect --format json`` tells of each, in order."""


def run_in_files(id_: str, files: Sequence[str]) -> Runs:
    """Returns the trace, or all traces of the session, with an id. Raises ``UserError`` if the files hold neither."""
    runs = _described(files, lambda trace: id_.lower() == trace.trace_id or id_ == trace.session_id)
    if not runs:
        raise UserError(f"{id_}: no trace and no session of the files has this id; `pandaeval inspect` lists them")
    return runs


def run_at_collector(id_: str, api: Api) -> Runs:
    """Returns the trace, or all traces of the session, with an id at a running collector. Raises ``UserError``."""
    is_trace = len(id_) == 32 and all(sign in "0123456789abcdef" for sign in id_.lower())
    runs = _kept(api, [id_.lower()] if is_trace else _members(api, id_))
    if runs is None:
        raise UserError(f"{id_}: its spans are not kept any more (store.keep_content, store.retention)")
    return runs


def failure_at_collector(group_id: str, api: Api) -> tuple[str, Runs]:
    """Returns the title of a group at a running collector, and its newest failure whose spans are kept: the traces of
    the conversation up to the one that failed. Raises ``UserError``."""
    group = api.get(f"/failures/{quote(group_id, safe='')}")
    for example in group["examples"]:
        session, last = example["session_id"], example["trace_id"]
        runs = _kept(api, [last] if session is None else _up_to(_members(api, session), last))
        if runs is not None:
            return group["title"], runs
    raise UserError(
        f"{group_id}: of none of its {len(group['examples'])} newest failures the spans are kept any more "
        "(store.keep_content, store.retention)"
    )


def failure_in_files(group_id: str, results: Path, files: Sequence[str]) -> tuple[str, Runs]:
    """Returns title and traces of the first failure of a group that ``results`` (``evaluate --format json``) has."""
    of_group = (((each.get("metadata") or {}).get("failure_group") or {}, each) for each in result_lines(results))
    group, failed = next(((group, each) for group, each in of_group if group.get("id") == group_id), ({}, None))
    if failed is None:
        raise UserError(f"{results}: no result is of the group {group_id} (metadata.failure_group.id)")
    last, session = failed["trace_id"], failed.get("session_id")
    runs = _described(files, lambda trace: trace.trace_id == last or bool(session and trace.session_id == session))
    ids = _up_to([run["trace_id"] for run in runs], last)
    runs = [run for run in runs if run["trace_id"] in ids]
    if not runs:
        raise UserError(f"{group_id}: trace {last} is not in these files; give those that were evaluated")
    return group.get("title", ""), runs


def write_case(runs: Runs, id_: str, case: str, description: str, config: Path | None, output: Path | None) -> None:
    """Writes the case of a run without secrets, among them what the configuration (``redact``) names. ``id_``: what the
    user asked for. Raises ``UserError`` where nothing was captured to make a case from."""
    named = resolve_config(config).config.redact
    hide = hider(JudgeSettings("", secrets=True, pii=named.pii, custom=named.custom))
    assert hide is not None
    try:
        made = freeze(runs, case, description=hide(description), hide=hide)
    except ValueError as error:
        raise UserError(f"{id_}: {error}") from error
    with OutputFile(output) as target:
        target.write(to_yaml([made]))


def _described(files: Sequence[str], is_wanted: Callable[[Trace], bool]) -> Runs:
    with TraceFiles() as run:
        run.add_all(requests(files))
        return [describe(trace) for trace in run.traces() if is_wanted(trace)]


def _members(api: Api, session_id: str) -> list[str]:
    return [member["trace_id"] for member in api.get(f"/sessions/{quote(session_id, safe='')}")["members"]]


def _kept(api: Api, trace_ids: Sequence[str]) -> Runs | None:
    """Returns the traces; ``None`` where the spans of one are not kept any more."""
    runs = [api.get(f"/traces/{id_}")["understood"] for id_ in trace_ids]
    return None if None in runs else runs


def _up_to(trace_ids: Sequence[str], last: str) -> list[str]:
    """Returns the ids of a conversation up to ``last``; ``last`` alone where the conversation does not hold it."""
    return [*trace_ids[: trace_ids.index(last) + 1]] if last in trace_ids else [last]
