"""Whether seven questions about a turn in one call lose anything against seven calls: both forms, the same judge.

    python tests/lab/bench/turn_calls.py [--n COPIES] [--faults NAME ...]

The recordings of ``tests/golden/captures``, and copies of the good ones with a fault planted by the drill, are judged
through ``pandaeval evaluate``'s own line with ``judge.turn_calls`` at ``shared`` and at ``separate``. The judge is the
script of ``tests/support/competent*.py``: it knows only what a prompt shows, rates by the guide that it is shown, and
its reply is cut where the call's limit cuts it. So it tells whether evidence, criteria or the form of the reply get
lost on the way; what a model's attention makes of a longer question it cannot tell.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from lab.bench._judgements import interval  # noqa: E402
from lab.bench._table import table  # noqa: E402
from pandaeval_collector.base.result import Result  # noqa: E402
from pandaeval_collector.base.score import Score  # noqa: E402
from pandaeval_collector.config import Config  # noqa: E402
from pandaeval_collector.judge.call import ModelAnswer, ModelCall  # noqa: E402
from pandaeval_collector.pipeline.line.understanding import Run  # noqa: E402
from pandaeval_collector.runs.counting import counter  # noqa: E402
from pandaeval_collector.runs.front import close_rules  # noqa: E402
from pandaeval_collector.runs.replay import replay  # noqa: E402
from pandaeval_collector.runs.replay_judge import ReplayJudge  # noqa: E402
from pandaeval_collector.runs.settings import evaluator, judge  # noqa: E402
from pandaeval_collector.scoring.registry import registry  # noqa: E402
from pandaeval_lab.drill.drill import Drill, Judgeable, chosen_faults  # noqa: E402
from pandaeval_lab.drill.fault import faults  # noqa: E402
from pandaeval_lab.drill.judged import JudgedMetric, judge_alone  # noqa: E402
from pandaeval_lab.replay.files import BadLine, Input, Request  # noqa: E402
from pandaeval_lab.replay.trace_files import TraceFiles  # noqa: E402
from support.competent import CompetentCaller  # noqa: E402
from support.competent_turns import asked_parts  # noqa: E402

Form = Literal["shared", "separate"]
Said = dict[tuple[str, str, str], Any]
"""What was said of a metric, by run, unit and metric."""
FORMS: tuple[Form, ...] = ("shared", "separate")
FAMILIES = ("value", "claim", "call", "course")
MODEL = "openai/scripted"
TURN = [key for key, metric in registry().items() if metric.level == "turn" and metric.kind == "llm"]
_MESSAGES = 3


@dataclass
class Counted:
    """The judge by script, with what it was sent. ``turns``: the records that it was asked about turns of."""

    calls: int = 0
    again: int = 0
    sent: int = 0
    received: int = 0
    fullest: float = 0.0
    turns: set[str] = field(default_factory=set)
    _judge: CompetentCaller = field(default_factory=CompetentCaller)
    _count: Callable[[str], int] = field(default_factory=lambda: counter(MODEL))

    async def complete(self, call: ModelCall) -> ModelAnswer:
        answer = await self._judge.complete(call)
        assert call.response_format is not None
        if not asked_parts(call.messages[2]["content"], call.response_format["json_schema"]["name"]):
            return answer
        long = self._count(answer.text)
        self.calls += 1
        self.again += len(call.messages) > _MESSAGES
        self.sent += sum(self._count(message["content"]) for message in call.messages)
        self.received += long
        self.fullest = max(self.fullest, long / call.max_tokens)
        self.turns.add(call.messages[1]["content"])
        return answer if long <= call.max_tokens else replace(answer, text=answer.text[: len(answer.text) // 2])


@dataclass
class Sheet:
    """What one form made of everything."""

    judge: Counted = field(default_factory=Counted)
    said: Said = field(default_factory=dict)
    metrics: dict[str, JudgedMetric] = field(default_factory=dict)
    noticed: dict[str, list[bool]] = field(default_factory=dict)

    def note(self, run: str, results: Iterable[Result]) -> dict[str, list[Result]]:
        found: dict[str, list[Result]] = {}
        for result in results:
            if result.unit.level == "turn" and result.evaluator.kind == "llm":
                self.said[run, result.unit.id, result.metric] = _decision(result)
                found.setdefault(result.metric, []).append(result)
        return found

    def copy(self, number: int, fault: str, before: Sequence[Result], after: Sequence[Result]) -> None:
        was, now = self.note(f"{number} before", before), self.note(f"{number} after", after)
        lower = False
        for metric in {*was, *now}:
            counted = self.metrics.setdefault(metric, JudgedMetric())
            so_far = counted.lower
            counted.add(was.get(metric, []), now.get(metric, []))
            lower = lower or counted.lower > so_far
        self.noticed.setdefault(fault, []).append(lower)


def _decision(result: Result) -> Any:
    finding = result.finding
    if isinstance(finding, Score):
        return finding.value, tuple(finding.metadata.get("labels", ()))
    return result.why


def results(
    form: Form, caller: Counted, files: TraceFiles, where: Callable[[Run], bool] | None = None
) -> Iterator[Result]:
    """What the script says about the turns of files; nothing else is scored."""
    config = Config(judge={"model": MODEL, "turn_calls": form}, metrics={"enabled": TURN})
    asked, scorer = judge(config), judge_alone(evaluator(config))
    assert asked is not None
    with ReplayJudge(files.store, scorer, asked, caller=caller) as by:
        yield from replay(files, scorer, by, where=where)


def requests(paths: Iterable[Path]) -> list[Request | BadLine]:
    return [request for path in paths for request in Input(str(path)).requests()]


def judged(form: Form, recorded: Sequence[Request | BadLine], drill: Drill, copies: Sequence[Judgeable]) -> Sheet:
    """Everything in one form."""
    sheet = Sheet()
    with TraceFiles() as files:
        for request in recorded:
            files.add(request)
        sheet.note("recorded", results(form, sheet.judge, files))
    again = drill.scored_again(copies, partial(results, form, sheet.judge))
    numbers = {id(copy): number for number, copy in enumerate(copies)}
    for copy, before, after in again:
        sheet.copy(numbers[id(copy)], copy.fault, before, after)
    return sheet


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, default=4, help="copies of each fault")
    parser.add_argument("--faults", nargs="*", default=FAMILIES, help="faults or families of faults")
    asked = parser.parse_args()
    config = Config()
    recorded = requests(sorted((ROOT / "tests/golden/captures").glob("*/*.otlp.jsonl")))
    with TraceFiles(close_rules(config)) as files:
        for request in recorded:
            files.add(request)
        drill = Drill(
            files,
            lambda some, where: replay(some, evaluator(config), where=where),
            chosen_faults(asked.faults, faults()),
            asked.n,
            keep=asked.n,
        )
        drill.run()
        copies = [copy for kept in drill.kept.values() for copy in kept]
        sheets = {form: judged(form, recorded, drill, copies) for form in FORMS}
    print(f"{len(copies)} copies with a fault of {len({copy.fault for copy in copies})} kinds")
    print("\n".join(tables(sheets["shared"], sheets["separate"])))


def tables(shared: Sheet, apart: Sheet) -> list[str]:
    metrics = sorted({metric for *_, metric in {**shared.said, **apart.said}})
    rows = []
    for metric in metrics:
        keys = [key for key in {**shared.said, **apart.said} if key[2] == metric]
        same = sum(shared.said.get(key, key) == apart.said.get(key) for key in keys)
        lower = [_lower(sheet.metrics.get(metric, JudgedMetric())) for sheet in (shared, apart)]
        rows.append([metric, len(keys), f"{same / len(keys):.1%}", *lower])
    head = ("metric", "verdicts", "the same in both", "copies scored lower, shared", "separate")
    by_fault = [
        [name, len(found), sum(found), sum(apart.noticed.get(name, ()))]
        for name, found in sorted(shared.noticed.items())
    ]
    costs = []
    for form, sheet in zip(FORMS, (shared, apart), strict=True):
        of, turns = sheet.judge, max(1, len(sheet.judge.turns))
        each = f"{of.calls / turns:.1f}", round(of.sent / turns), round(of.received / turns)
        costs.append([form, turns, *each, of.again, f"{of.fullest:.0%}"])
    cost = (
        "form",
        "turns",
        "calls a turn",
        "tokens sent a turn",
        "received",
        "asked again",
        "longest reply of its limit",
    )
    return [
        table("Verdicts", head, rows),
        table("Faults that any metric scores lower", ("fault", "copies", "shared", "separate"), by_fault),
        table("What it takes", cost, costs),
    ]


def _lower(metric: JudgedMetric) -> str:
    return f"{metric.lower} of {metric.pairs}: {interval(metric.lower, metric.pairs)}"


if __name__ == "__main__":
    main()
