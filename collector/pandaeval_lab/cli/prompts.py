"""``pandaeval prompts``: the exact prompts of the judge."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, TypeVar

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.printable import printable
from pandaeval_collector.cli._config import MetricsConfigFile
from pandaeval_collector.cli._options import argument, option
from pandaeval_collector.cli._output import console
from pandaeval_collector.jobs import same_cause
from pandaeval_collector.judge.client import Judge
from pandaeval_collector.judge.conversation import Conversation, conversation
from pandaeval_collector.judge.pack import Pack, pack
from pandaeval_collector.judge.prompt import messages, repair, response_format, shape
from pandaeval_collector.judge.redact import redacted
from pandaeval_collector.judge.rubric import Rubric, Verdict, rubric_of
from pandaeval_collector.judge.rulings import Guidance, Ruling, guidance
from pandaeval_collector.judge.turns import TurnView, turn_view
from pandaeval_collector.runs.rulings_file import read_rulings, rulings_path
from pandaeval_collector.scoring.metric import JudgedMetric, answered_with
from pandaeval_collector.scoring.registry import registry
from pandaeval_lab.cases.model import Scenario
from pandaeval_lab.cli._inputs import traces_of
from pandaeval_lab.cli._names import config_with_trials, selected
from pandaeval_lab.replay import grouping
from pandaeval_lab.replay.counting import sample_value
from pandaeval_lab.running import simulated
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.trace import is_genai

V = TypeVar("V", bound=Verdict)
_RECORD = "(the record of the run)"
_FAILURES = "(the failures, each with its number, label and reason)"
SIMULATED_USER = "simulated_user"
TOLD = "(the reason of the judge)"


def prompts(
    name: Annotated[
        str | None,
        argument("Judged metric, or trace, turn, error_deduplication, same_cause or simulated_user; default: all."),
    ] = None,
    config: MetricsConfigFile = None,
    trace: Annotated[str | None, option("Fill the prompts with the first trace or session of this file.")] = None,
) -> None:
    """Print the exact prompts sent to the judge.

    Placeholders mark data that an earlier question to the judge would provide (task, plan).
    """
    settings = config_with_trials(config)
    known = registry(settings.metrics.modules)
    judged = {key: metric for key, metric in known.items() if isinstance(metric, JudgedMetric)}
    traces = [] if trace is None else _first_session(trace)
    rulings = read_rulings(rulings_path(settings))
    alone = {**of_failures(), SIMULATED_USER: _of_user(), **shared(judged.values(), traces)}
    texts: Iterable[str]
    if name is None:
        texts = [*alone.values(), *_of_metrics(judged, judged, traces, rulings)]
    elif name in alone:
        texts = [alone[name]]
    else:
        keys = selected(settings, name)
        named = {key: metric for key, metric in judged.items() if key in keys}
        if not named:
            raise UserError(f"{name} calls no model, so it has no prompt; `pandaeval metrics` lists the kinds")
        texts = _of_metrics(named, judged, traces, rulings)
    out = console()
    for text in texts:
        out.print(printable(text), soft_wrap=True)


def _of_metrics(
    metrics: Mapping[str, JudgedMetric],
    judged: Mapping[str, JudgedMetric],
    traces: Sequence[Trace],
    rulings: Sequence[Ruling],
) -> Iterator[str]:
    shown: set[tuple[str, str]] = set()
    agent = traces[0].agent if traces else ""
    for key, metric in metrics.items():
        for rubric, text in rendered_questions(
            metric, traces, guidance(rulings, answered_with(metric, judged.values()), metric.asks, agent)
        ):
            if (rubric.name, rubric.version) not in shown:
                shown.add((rubric.name, rubric.version))
                yield f"=== {key}: {rubric.name}, version {rubric.version} ===\n\n{text}"


def _first_session(name: str) -> list[Trace]:
    found = [trace for trace in traces_of([name]) if is_genai(trace)]
    if not found:
        raise UserError(f"{name}: the file has no agent trace; `pandaeval inspect` shows how it was read")
    session = found[0].session_id
    return [found[0], *(trace for trace in found[1:] if session is not None and trace.session_id == session)]


def rendered_questions(
    metric: JudgedMetric, traces: Sequence[Trace], guidance: Guidance
) -> Iterator[tuple[Rubric, str]]:
    """Yield each question of the metric with rulings, messages and schema as text.

    Placeholders replace earlier extractions.
    """
    given: Mapping[str, Mapping[str, Any]] = {}
    subject = _subject(metric.level, [redacted(trace) for trace in traces]) if traces else None
    packed = _packed(subject if subject is None or isinstance(subject, Trace) else subject.trace)
    if subject is not None:
        asked = _Asked(packed)
        with suppress(Exception):  # a metric can fail on placeholders; its earlier questions are known
            asyncio.run(_finished(metric.ask(subject, asked)))
        given = asked.given
    for rubric in map(guidance.added_to, metric.rubrics):
        yield rubric, _written(packed, rubric, given.get(rubric.name))


def _subject(level: str, traces: Sequence[Trace]) -> Trace | TurnView | Conversation:
    match level:
        case "session":
            return conversation(traces, traces[-1].digest)
        case "turn":
            return turn_view(traces[0], 0)
    return traces[0]


def shared(metrics: Collection[JudgedMetric], traces: Sequence[Trace]) -> Mapping[str, str]:
    """Return the question that judges all metrics of a level in a call, for levels with at least two judged metrics."""
    packed = _packed(redacted(traces[0]) if traces else None)
    texts: dict[str, str] = {}
    for level in ("trace", "turn"):
        own = [metric.part for metric in metrics if metric.level == level and metric.part is not None]
        if len(own) < 2:
            continue
        parts = (*dict.fromkeys(needed for part in own for needed in part.needs), *own)
        names = ", ".join(part.name for part in parts)
        texts[level] = f"=== {level}: {names}, in one call ===\n\n{_written(packed, rubric_of(parts), None)}"
    return texts


def _packed(trace: Trace | None) -> Pack:
    if trace is None:
        return Pack(_RECORD, "CODE", "", 0, ())
    return pack(trace, secrets.token_bytes(16))


def of_failures() -> Mapping[str, str]:
    packed = Pack(_FAILURES, "CODE", "", 0, ())
    texts: dict[str, str] = {}
    rubrics: Mapping[str, Rubric] = {"number of failures": grouping.RUBRIC, "number of groups": same_cause.RUBRIC}
    for number, rubric in rubrics.items():
        text = _written(packed, rubric, {number: "(how many there are)"})
        texts[rubric.name] = f"=== failures: {rubric.name}, version {rubric.version} ===\n\n{text}"
    return texts


def _of_user() -> str:
    held = Scenario(goal="(the goal)", profile="(the profile)", knowledge=("(each fact)",))
    return (
        f"=== cases run --simulate: {SIMULATED_USER}, version {simulated.VERSION} ===\n\n{simulated.prompt(held, 1)}\n"
    )


def _written(packed: Pack, rubric: Rubric, given: Mapping[str, Any] | None) -> str:
    parts = [f"--- {message['role']} ---\n{message['content']}\n" for message in messages(packed, rubric, given)]
    again = repair("(what is wrong with the reply)")
    schema = json.dumps(response_format(rubric), ensure_ascii=False, indent=1)
    parts.append(f"--- response_format, if the provider supports it ---\n{schema}\n")
    parts.append(f"--- {again['role']}, sent once, after an invalid reply ---\n{again['content']}\n")
    return "\n".join(parts)


async def _finished(work: Awaitable[object]) -> None:
    await work


class _Asked(Judge):
    def __init__(self, packed: Pack) -> None:
        self._pack = packed
        self.given: dict[str, Mapping[str, Any]] = {}

    async def ask(self, rubric: Rubric[V], given: Mapping[str, Any] | None = None, once: bool = False) -> V:
        self.given[rubric.name] = given or {}
        return rubric.verdict.model_validate_json(json.dumps(sample_value(shape(rubric), text=TOLD)))
