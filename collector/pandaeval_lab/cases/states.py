"""Compares state, answer format and plan of a trial with its case."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from pandaeval_lab.cases.arguments import same
from pandaeval_lab.cases.model import OutputFormat
from pandaeval_lab.cases.schemas import compiled, schema_errors
from pandaeval_lab.cases.trial import EXIT_CODE, PLAN, Trial
from pandaeval_otel.model import Kind, Reasoning, Text, Trace

# Checks of the form of an answer.
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_FENCED = re.compile(r"```(?:json)?[^\S\n]*\n(.*)```", re.DOTALL)
_LONGEST = 200_000
_ITEM = re.compile(r"^[^\S\n]*+(?:[-*•]|\(?\d{1,3}[.):]|step\s+\d{1,3}\s*[.):-])\s*(.+)$", re.IGNORECASE | re.MULTILINE)
_MOST = 20_000
_CODES = ("exit_code", "exitCode", "returncode", "return_code", "returnCode")


def format_faults(wanted: OutputFormat, answer: str, answers: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each unmet condition. ``answer``: the last of ``answers``."""
    if wanted.type == "json" or wanted.json_schema is not None:
        try:
            value: Any = orjson.loads(_unfenced(answer))
        except ValueError as error:
            yield f"is not valid JSON: {str(error)[:200]}"
        else:
            yield from schema_errors(wanted.json_schema, value) if wanted.json_schema is not None else ()
    if wanted.pattern is not None and compiled(wanted.pattern).search(answer[:_LONGEST]) is None:
        yield f"the pattern {wanted.pattern!r} is not found"
    answer_text = _plain("\n".join(answers) or answer)
    yield from (f"{text!r} is missing" for text in wanted.contains if _plain(text) not in answer_text)
    yield from (f"{text!r} appears" for text in wanted.excludes if _plain(text) in answer_text)


def _unfenced(answer: str) -> str:
    fenced = _FENCED.fullmatch(answer.strip())
    return answer if fenced is None else fenced[1]


def _plain(text: str) -> str:
    return _GROUPED.sub("", " ".join(text.split())).casefold()


def planned_tools(trial: Trial) -> list[str] | None:
    """Return the tools of the declared plan, in order, or ``None``. See ``graders/plan_adherence.py``."""
    plan = trial.stated(PLAN)
    steps = plan if isinstance(plan, Sequence) and not isinstance(plan, str) else ()
    stated = [step.get("tool") if isinstance(step, dict) else step for step in steps]
    named = [tool for tool in stated if isinstance(tool, str) and tool]
    if named:
        return named
    known = {*trial.schemas, *(call.name for call in trial.all_calls), *(e.tool_name for e in trial.expected or ())}
    known |= {tool.name for trace in trial.traces for tool in trace.tools}
    # Longest names first: `get_order_status` is not `get_order`.
    names = sorted((name for name in known if len(name) > 1), key=lambda name: (-len(name), name))
    for text in _before_acting(trial.traces[0]):
        items = _ITEM.findall(text[:_MOST])
        found = [name for item in items if (name := _first(item, names)) is not None]
        if len(items) > 1 and found:
            return found
    return None


def _first(item: str, names: Sequence[str]) -> str | None:
    found = ((match.start(), name) for name in names if (match := re.search(rf"(?<!\w){re.escape(name)}(?!\w)", item)))
    return min(found, default=(0, None))[1]


def _before_acting(trace: Trace) -> Iterator[str]:
    first = min((call.start_ns for call in trace.tool_calls if call.start_ns), default=None)
    for span in trace.spans:
        if span.kind is not Kind.LLM or (first is not None and span.start_ns > first):
            continue
        for message in span.output or ():
            yield from (part.text for part in message.parts if isinstance(part, Reasoning | Text) and part.text)


def differences(expected: Any, actual: Any, path: str = "") -> Iterator[dict[str, Any]]:
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key, value in expected.items():
            place = f"{path}.{key}" if path else str(key)
            if key in actual:
                yield from differences(value, actual[key], place)
            else:
                yield {"field": place, "expected": value, "actual": None, "missing": True}
    elif not same(expected, actual):
        yield {"field": path, "expected": expected, "actual": actual}


def exit_code_of(trial: Trial) -> int | None:
    """Read the exit code from ``pandaeval.exit_code``, else from the last tool result with an exit code."""
    stated = _whole(trial.stated(EXIT_CODE))
    if stated is not None:
        return stated
    for call in reversed(trial.all_calls):
        if isinstance(call.result, Mapping):
            for name in _CODES:
                if (code := _whole(call.result.get(name))) is not None:
                    return code
    return None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
