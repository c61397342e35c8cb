"""The runs of a group of failures, as a case is made of them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.given_files import open_given

if TYPE_CHECKING:
    from pandaeval_collector.cli._run_place import Api

Runs = list[dict[str, Any]]
"""Traces as ``pandaeval inspect --format json`` tells of each, in order."""


def from_collector(api: Api, group_id: str) -> tuple[str, Runs]:
    """Returns the title of a group at a running collector, and its newest failure whose spans are kept: the traces of
    the conversation up to the one that failed. Raises ``UserError``."""
    from urllib.parse import quote

    group = api.get(f"/failures/{quote(group_id, safe='')}")
    for example in group["examples"]:
        ids = [example["trace_id"]]
        if example["session_id"] is not None:
            members = [
                each["trace_id"] for each in api.get(f"/sessions/{quote(example['session_id'], safe='')}")["members"]
            ]
            ids = _up_to(members, example["trace_id"])
        found = [api.get(f"/traces/{each}")["understood"] for each in ids]
        if all(each is not None for each in found):
            return group["title"], found
    raise UserError(
        f"{group_id}: of none of its {len(group['examples'])} newest failures the spans are kept any more "
        "(store.keep_content, store.retention)"
    )


def from_results(group_id: str, results: Path, files: Sequence[str]) -> tuple[str, Runs]:
    """Returns title and traces of the first failure of a group that ``results`` (``evaluate --format json``) has."""
    from pandaeval_collector.cli._inputs import requests
    from pandaeval_collector.runs.filerun import FileRun
    from pandaeval_collector.show.report.inspection import describe

    title, trace_id, session_id = _first(group_id, results)
    with FileRun(None) as run:
        for request in requests(files):
            run.add(request)
        wanted = [t for t in run.traces() if t.trace_id == trace_id or (session_id and t.session_id == session_id)]
    ids = _up_to([trace.trace_id for trace in wanted], trace_id)
    found = [describe(trace) for trace in wanted if trace.trace_id in ids]
    if not found:
        raise UserError(f"{group_id}: trace {trace_id} is not in these files; give those that were evaluated")
    return title, found


def _first(group_id: str, results: Path) -> tuple[str, str, str | None]:
    for result in _lines(results):
        group = result.get("metadata", {}).get("failure_group") or {}
        if group.get("id") == group_id:
            return group.get("title", ""), result["trace_id"], result.get("session_id")
    raise UserError(f"{results}: no result is of the group {group_id} (metadata.failure_group.id)")


def _lines(results: Path) -> Iterator[dict[str, Any]]:
    try:
        with io.TextIOWrapper(open_given(results), encoding="utf-8") as file:
            for line in file:
                held = json.loads(line) if line.strip() else None
                if isinstance(held, dict):
                    yield held
    except (OSError, ValueError) as error:
        raise UserError(f"{results}: no results of `pandaeval evaluate --format json` ({error})") from error


def _up_to(trace_ids: Sequence[str], last: str) -> list[str]:
    """Returns the ids of a conversation up to ``last``; ``last`` alone where the conversation does not hold it."""
    ids = [*trace_ids]
    return ids[: ids.index(last) + 1] if last in ids else [last]
