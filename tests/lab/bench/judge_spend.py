"""Measures calls, tokens and dollars per 1,000 sessions by ``judge.detail``.

    python tests/lab/bench/judge_spend.py [--set tau2-policy] [--half even] [--model gpt-4.1] [--limit N]

A scripted judge fails sessions by label, else every second session. Prices are litellm's list. *Cacheable*: prompt
tokens shared with an earlier prompt, as OpenAI caches them.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from pandaeval_collector.analysis.embedding import load  # noqa: E402
from pandaeval_collector.judge.call import JudgeConfig, ModelAnswer, ModelCall  # noqa: E402
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings  # noqa: E402
from pandaeval_lab.replay.counting import CountingCaller, counter  # noqa: E402
from pandaeval_lab.replay.judge import ReplayJudge  # noqa: E402
from pandaeval_lab.replay.replay import replay  # noqa: E402
from pandaeval_lab.replay.trace_files import TraceFiles  # noqa: E402
from tests.lab._sessions import HALVES, SETS, requests, success  # noqa: E402

_LEAST_CACHED, _STEP, _REMEMBERED = 1024, 128, 40
_RIGHT: dict[str, Any] = {
    "broken_rules": [],
    "misstatements": [],
    "first_wrong_step": None,
    "correct": True,
    "sure": 95,
}
_RIGHT |= {"goal_completed": True, "friction": "none", "friction_turns": []}
_WRONG: dict[str, Any] = {"correct": False, "sure": 5, "friction": "none", "friction_turns": []}


def _common(one: str, other: str) -> str:
    """Return the common beginning of two texts."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if one[:middle] == other[:middle] else (least, middle - 1)
    return one[:least]


class _HalfRight(CountingCaller):
    """Passes ``right`` of the sessions in turn."""

    def __init__(self, right: float) -> None:
        super().__init__({})
        self._right, self._verdicts = right, 0
        self.cacheable, self._prompts, self._count = 0, list[str](), counter("gpt-4.1")

    async def complete(self, call: ModelCall) -> ModelAnswer:
        answer = await super().complete(call)
        text = "\n".join(message["content"] for message in call.messages)
        begun = max((_common(text, each) for each in self._prompts), key=len, default="")
        if (held := self._count(begun)) >= _LEAST_CACHED:
            self.cacheable += held // _STEP * _STEP
        self._prompts = [*self._prompts[1 - _REMEMBERED :], text]
        made = json.loads(answer.text)
        if "things" not in made:
            return answer
        self._verdicts += 1
        is_right = int(self._verdicts * self._right) > int((self._verdicts - 1) * self._right)
        made = {key: (_RIGHT if is_right else _WRONG).get(key, held) for key, held in made.items()}
        if is_right:
            made["things"] = [each | {"became": "done"} for each in made["things"]]
        return replace(answer, text=json.dumps(made))


def measured(name: str, half: str, model: str, detail: str, limit: int | None) -> tuple[_HalfRight, int]:
    labels = [*success(name).values()]
    caller = _HalfRight(sum(labels) / len(labels) if labels else 0.5)
    settings = EvaluatorSettings(judge=JudgeSettings(model, detail=detail))  # type: ignore[arg-type]
    sessions: set[str | None] = set()
    with TraceFiles() as files:
        files.add_all(requests(name, half, limit))
        evaluator = Evaluator(load("embedded"), settings)
        with ReplayJudge(files.store, evaluator, JudgeConfig((model,)), caller=caller) as judge:
            sessions = {each.unit.session_id or each.unit.trace_id for each in replay(files, evaluator, judge)}
    return caller, len(sessions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", default="tau2-policy", choices=SETS)
    parser.add_argument("--half", default="even", choices=HALVES)
    parser.add_argument("--model", default="gpt-4.1")
    parser.add_argument("--limit", type=int)
    given = parser.parse_args()
    import litellm

    price = litellm.model_cost[given.model]
    print("detail    calls  prompt tokens  cacheable  completion tokens  USD per 1,000 sessions  with cache")
    for detail in ("none", "failing", "all"):
        caller, sessions = measured(given.set, given.half, given.model, detail, given.limit)
        counted = caller.counted
        usd = counted.prompt_tokens * price["input_cost_per_token"]
        usd += counted.completion_tokens * price["output_cost_per_token"]
        saved = caller.cacheable * (price["input_cost_per_token"] - price["cache_read_input_token_cost"])
        each = [counted.calls, counted.prompt_tokens, caller.cacheable, counted.completion_tokens]
        each += [1000 * usd, 1000 * (usd - saved)]
        per = [f"{value / sessions:,.1f}" for value in each]
        print("{:8} {:>6} {:>14} {:>10} {:>18} {:>23} {:>11}".format(detail, *per), flush=True)


if __name__ == "__main__":
    main()
