"""Makes a case of a recorded run: what it was given, the tools that it had, and what they gave back, without secrets.

What it should have done is left open, for a person to fill in: no run tells that by itself. Then the run that the case
was made from is its first trial.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from pandaeval_collector.base.untrusted.yaml_text import WORDS
from pandaeval_collector.judge.redact import Hide, redact, redact_value
from pandaeval_collector.scoring.cases.model import Case

_MOST_CALLS = 500
_HEAD = """\
# Made of a recorded run by `pandaeval cases from-trace`; secrets were taken out.
# What the agent should have done is yours to say:
#   1. write expected_tools (the calls of tools that change something; [] for none), or an expected outcome;
#   2. take what you filled in out of "open" (or the whole line). Until then no trial of the case is decided.
# recorded.calls has what was called and what came back, for replay.
"""


class _Dumper(yaml.SafeDumper):
    """Puts into quotes what either YAML or our reader would take for something else than text."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


for _tag, _pattern, _first in WORDS:
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, _first)


def freeze(
    traces: Sequence[Mapping[str, Any]], case_id: str, *, description: str = "", hide: Hide = redact
) -> dict[str, Any]:
    """The case of a run. ``traces``: as `pandaeval inspect --format json` tells of each, in order, at least one;
    ``hide``: what is applied to every text, besides values in fields that are named like secrets. Raises ``ValueError``
    where nothing was captured to make a case of."""
    runs = [redact_value(trace, hide) for trace in traces]
    ids = [str(trace["trace_id"]) for trace in traces]
    messages = [text for run in runs for text in _messages(run)]
    calls = [_call(call) for run in runs for call in run["tool_calls"]][:_MOST_CALLS]
    if not messages and not calls:
        raise ValueError("neither what the user said nor any call was captured: there is nothing to make a case of")
    session = traces[0].get("session_id")
    case = {
        "id": case_id,
        "description": description,
        "source": f"session {redact_value(session, hide)}" if session and len(traces) > 1 else f"trace {ids[0]}",
        "kind": "regression",
        "inputs": {"task": messages[0]} if messages else {},
        "counted_calls": {"tools": "changing", "failed": False},
        "tool_sequence_matters": False,
        "graders": ["run_ended"],
        "open": ["expected_tools"],
        "recorded": {
            "trace_ids": ids,
            "tools": _tools(runs),
            "messages": messages,
            "calls": calls,
            "answer": next((run["output"] for run in reversed(runs) if run["output"]), None),
        },
    }
    Case.model_validate(case)
    return case


def to_yaml(cases: Sequence[Mapping[str, Any]]) -> str:
    """A case file, with what a person has to do at its top."""
    text = yaml.dump(
        {"cases": [dict(case) for case in cases]}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110
    )
    return _HEAD + str(text)


def _messages(run: Mapping[str, Any]) -> list[str]:
    """What the user said, in order."""
    said = [turn["user"] for turn in run["turns"] if turn["user"]]
    return said or ([run["input"]] if run["input"] else [])


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    made = {"tool_name": call["name"], "parameters": call["arguments"], "result": call["result"]}
    return {**made, "error": call["error"]} if call["error"] else made


def _tools(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    found = {tool["name"]: tool for run in runs for tool in run["tools"] if tool["name"]}
    return [{key: tool[key] for key in ("name", "description", "parameters") if tool[key]} for tool in found.values()]
