"""The file of canaries: runs whose verdicts are known (YAML)::

- name: booked as asked
  traces: good.otlp.jsonl          # beside this file; its first agent trace is judged
  expected:
    trace.task_completion: [0.7, 1.0]
    trace.confidence: [0.5, 1.0]
- name: tells the judge what to say
  traces: injected.otlp.jsonl
  expected: {trace.task_completion: injection_suspected}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_collector.config import ConfigError, read_yaml
from pandaeval_collector.judge.desk import Judge, NoVerdictError
from pandaeval_collector.pipeline.line.stored_traces import rebuilt
from pandaeval_collector.receivers.files import BadLine, Input, UnusableInputError
from pandaeval_collector.scoring.metric import Texts, TraceContext, TraceMetric
from pandaeval_collector.scoring.registry import registry
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.trace import is_genai
from pandaeval_otel.wire.splitting import split_logs, split_traces

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Expected = tuple[Share, Share] | Literal["injection_suspected", "no_content"]


class _Canary(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    traces: str
    expected: Mapping[str, Expected] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Canary:
    """A run with the verdicts that are expected on it, by metric key."""

    name: str
    trace: Trace
    expected: Mapping[str, Expected]


@dataclass(frozen=True, slots=True)
class Flock:
    """All canaries of a file; ``digest`` changes when any of them does."""

    canaries: tuple[Canary, ...]
    digest: str


def read_canaries(path: Path, modules: tuple[str, ...] = ()) -> Flock:
    """Reads a file of canaries. ``modules``: as :func:`registry` takes them. Raises ``UserError`` for a file that
    cannot be used, traces and names of metrics included."""
    try:
        held = TypeAdapter(list[_Canary]).validate_python(read_yaml(path))
    except ConfigError as error:
        raise UserError("\n".join(f"judge.canaries: {problem}" for problem in error.problems)) from error
    except ValidationError as error:
        raise UserError("\n".join(f"judge.canaries: {path}: {fault}" for fault in _faults(error))) from error
    judged = {key for key, metric in registry(modules).items() if metric.kind == "llm" and metric.level == "trace"}
    for each in held:
        unknown = sorted(set(each.expected) - judged)
        if unknown:
            raise UserError(f"judge.canaries: {path}: {each.name}: {unknown[0]} is no judged metric of traces")
    found = tuple(Canary(each.name, first_agent_trace(path.parent / each.traces), each.expected) for each in held)
    about = [(each.name, each.trace.digest, sorted(each.expected.items())) for each in found]
    return Flock(found, hashlib.blake2b(json.dumps(about).encode(), digest_size=8).hexdigest())


def _faults(error: ValidationError) -> Iterator[str]:
    for each in error.errors(include_url=False, include_input=False):
        yield one_printable_line(f"{'.'.join(map(str, each['loc'])) or 'the file'}: {each['msg']}")


def first_agent_trace(path: Path) -> Trace:
    """Returns the first agent trace of a file, in normal form. Raises ``UserError`` for a file without one."""
    chunks: list[tuple[bytes, bool, bytes]] = []
    try:
        for request in Input(str(path)).requests():
            if isinstance(request, BadLine):
                raise UserError(f"judge.canaries: {request.place}: {request.reason}")
            split = split_logs(request.data) if request.logs else split_traces(request.data)
            chunks += [(fragment.trace_id, fragment.logs, fragment.chunk) for fragment in split.fragments]
    except UnusableInputError as error:
        raise UserError(f"judge.canaries: {error}") from error
    for wanted in dict.fromkeys(trace_id for trace_id, _, _ in chunks):
        trace = rebuilt((logs, chunk) for trace_id, logs, chunk in chunks if trace_id == wanted).trace
        if trace is not None and is_genai(trace):
            return trace
    raise UserError(f"judge.canaries: {path}: no agent trace in it")


# Asks a judge about a run whose verdict is known, as the collector would ask about any other run.
async def finding_of(metric: TraceMetric, trace: Trace, judge: Judge) -> Finding | None:
    """Returns the finding of a judged metric on a run. Raises ``CallFailedError`` and ``OverBudgetError``."""
    before = metric.evaluate(trace, TraceContext(Texts({}, (), "none", None), 0.5))
    if before is not None or metric.ask is None:
        return before
    try:
        return await metric.ask(trace, judge)
    except NoVerdictError as error:
        return Unscored(error.why, str(error))


def said(finding: Score) -> float:
    """Returns the judge's own score, 0..1, before facts counted by code lowered it."""
    judged = finding.metadata.get("judged")
    return float(judged) if isinstance(judged, int | float) and 0.0 <= judged <= 1.0 else finding.value


def as_expected(finding: Finding | None, expected: Expected) -> bool:
    """Returns whether a finding is as expected: a score in the band, or unscored for the reason named."""
    if isinstance(expected, str):
        return isinstance(finding, Unscored) and finding.why is Why(expected)
    return isinstance(finding, Score) and expected[0] <= finding.value <= expected[1]
