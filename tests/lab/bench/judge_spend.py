"""What judging a session costs by ``judge.detail``: calls, prompt tokens and dollars per 1,000 sessions.

    python tests/lab/bench/judge_spend.py [--set tau2-policy] [--half even] [--model gpt-4.1] [--limit N]

A scripted judge finds each session wrong whose label is bad, or where there is no label every second one. Its answers
have the length that an estimate assumes (:mod:`pandaeval_lab.replay.counting`). Prices are litellm's list.
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
from pandaeval_lab.replay.counting import CountingCaller  # noqa: E402
from pandaeval_lab.replay.judge import ReplayJudge  # noqa: E402
from pandaeval_lab.replay.replay import replay  # noqa: E402
from pandaeval_lab.replay.trace_files import TraceFiles  # noqa: E402
from tests.lab._sessions import HALVES, SETS, requests, success  # noqa: E402

_RIGHT: dict[str, Any] = {
    "broken_rules": [],
    "misstatements": [],
    "first_wrong_step": None,
    "correct": True,
    "sure": 95,
}
_RIGHT |= {"goal_completed": True, "friction": "none", "friction_turns": []}
_WRONG: dict[str, Any] = {"correct": False, "sure": 5, "friction": "none", "friction_turns": []}


class _HalfRight(CountingCaller):
    """Answers verdicts on ``right`` of the sessions in turn, in the order in which they are asked."""

    def __init__(self, right: float) -> None:
        super().__init__({})
        self._right, self._verdicts = right, 0

    async def complete(self, call: ModelCall) -> ModelAnswer:
        answer = await super().complete(call)
        made = json.loads(answer.text)
        if "things" not in made:
            return answer
        self._verdicts += 1
        is_right = int(self._verdicts * self._right) > int((self._verdicts - 1) * self._right)
        made = {key: (_RIGHT if is_right else _WRONG).get(key, held) for key, held in made.items()}
        if is_right:
            made["things"] = [each | {"became": "done"} for each in made["things"]]
        return replace(answer, text=json.dumps(made))


def measured(name: str, half: str, model: str, detail: str, limit: int | None) -> tuple[CountingCaller, int]:
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
    print("detail    calls  prompt tokens  completion tokens  USD per 1,000 sessions")
    for detail in ("none", "failing", "all"):
        caller, sessions = measured(given.set, given.half, given.model, detail, given.limit)
        counted = caller.counted
        usd = counted.prompt_tokens * price["input_cost_per_token"]
        usd += counted.completion_tokens * price["output_cost_per_token"]
        each = [counted.calls, counted.prompt_tokens, counted.completion_tokens]
        per = [f"{value / sessions:,.1f}" for value in each]
        print(f"{detail:8} {per[0]:>6} {per[1]:>14} {per[2]:>18} {1000 * usd / sessions:>23,.1f}", flush=True)


if __name__ == "__main__":
    main()
