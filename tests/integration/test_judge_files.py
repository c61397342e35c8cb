"""Judged files with the real judge process."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pandaeval_collector.base.result import Result
from pandaeval_collector.cli import app
from pandaeval_collector.judge.call import JudgeConfig
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.store import jobs
from pandaeval_collector.store.connection import FILE_NAME
from pandaeval_lab.cases import Case, Suite
from pandaeval_lab.cases.grading import TrialGrader
from pandaeval_lab.cases.model import Recorded
from pandaeval_lab.cases.trial import TrialMatcher
from pandaeval_lab.replay import trial_grading
from pandaeval_lab.replay.files import Request
from pandaeval_lab.replay.judge import ReplayJudge
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_lab.replay.trial_grading import graded
from support.chained import turn
from support.database import open_database
from support.embedder import WordEmbedder
from support.judge import FAULTS, JudgeAnswer, JudgeServer, verdict
from support.made_traces import Composer

MODEL = "openai/gpt-4o-mini"
SESSION = ("session.agent_consistency", "session.agent_reliability")
ENVIRON = {**os.environ, "JUDGE_KEY": "sk-test"}


def _setup(server: JudgeServer) -> JudgeConfig:
    return JudgeConfig((MODEL,), server.url, "JUDGE_KEY", timeout=60.0, retries=0, cooldown=0.01)


def _run(server: JudgeServer, *, judged: bool = True, count: int = 6, daily_usd: float | None = None) -> list[Result]:
    composer = Composer(5)
    enabled = {"trace.coherence", "trace.tool_loop", "trace.confidence", *SESSION}
    settings = EvaluatorSettings(enabled, judge=JudgeSettings(MODEL) if judged else None)
    evaluator, config = Evaluator(WordEmbedder(), settings), replace(_setup(server), daily_usd=daily_usd)
    with TraceFiles() as run, ReplayJudge(run.store, evaluator, config, ENVIRON) as judge:
        for _ in range(count):
            run.add(Request(False, composer.trace().request().SerializeToString()))
        return list(replay(run, evaluator, judge if judged else None))


def test_file_runs_are_judged_and_session_metrics_use_the_verdicts() -> None:
    with JudgeServer() as server:
        results = _run(server)
    confidence = [result for result in results if result.metric == "confidence"]
    assert len(confidence) == 6
    judged = [result for result in confidence if result.why != "no_content"]
    assert {result.score for result in judged} == {0.8}
    assert all(result.evaluator.model == MODEL and result.tokens > 0 for result in judged)
    assert all(result.cost_usd > 0 and result.finding.metadata["inclusion_probability"] == 1.0 for result in judged)
    assert "scored" in {r.outcome for r in results if r.metric == "agent_consistency"}


def test_a_judge_that_is_down_does_not_affect_other_metrics() -> None:
    with JudgeServer(FAULTS["500"]) as server:
        results = _run(server, count=9)
        assert len(server.requests) < 12, "the judge must not be retried for every trace"
        without = _run(server, judged=False, count=9)
    inline = {r.id: r.score for r in results if r.unit.level == "trace" and r.evaluator.kind != "llm"}
    assert inline == {r.id: r.score for r in without if r.unit.level == "trace"}
    assert {r.why for r in results if r.metric == "confidence"} <= {"judge_failed", "no_content"}
    assert "judge_failed" in {r.why for r in results if r.metric == "confidence"}
    assert all("scripted fault" in r.finding.reason for r in results if r.why == "judge_failed")
    sessions = [r for r in results if r.unit.level == "session"]
    assert sessions
    assert "insufficient_evidence" in {r.why for r in sessions}
    assert not [r for r in sessions if r.metric == "agent_consistency" and r.outcome == "scored"]


def test_trials_judged_in_small_batches_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_grading, "_AT_A_TIME", 2)
    progress_calls: list[tuple[int, int]] = []
    settings = EvaluatorSettings({"trial.trial_correct"}, judge=JudgeSettings(MODEL))
    evaluator = Evaluator(WordEmbedder(), settings)
    traces = [turn(number) for number in range(1, 6)]
    recorded = [Recorded(trace_ids=(each.trace_id.hex(),)) for each in traces]
    cases = [Case(id=f"c{at}", expected_answer="42", recorded=each) for at, each in enumerate(recorded)]

    def right(number: int, body: dict[str, Any]) -> JudgeAnswer:
        fields = json.loads(verdict(body, score=1.0))
        return JudgeAnswer(json.dumps({key: value for key, value in fields.items() if key != "confidence"}))

    with JudgeServer(right) as server:
        config = _setup(server)
        grader = TrialGrader(evaluator, Suite(cases=tuple(cases)))
        progress = lambda done, total: progress_calls.append((done, total))  # noqa: E731
        matcher = TrialMatcher(grader.suite)
        with TraceFiles() as run, ReplayJudge(run.store, evaluator, config, ENVIRON, on_judged=progress) as judge:
            for each in traces:
                run.add(Request(False, each.request().SerializeToString()))
            assert not [*replay(run, evaluator, judge, on_decided=lambda decision: matcher.add(decision.traces))]
            results = [*graded(run, grader, matcher, judge)]
    assert progress_calls == [(done, 5) for done in range(1, 6)]
    assert [result.finding.metadata["case"] for result in results] == ["c0", "c1", "c2", "c3", "c4"]
    assert {result.score for result in results} == {1.0}


@pytest.mark.slow
def test_no_judge_is_called_with_a_daily_budget_of_0() -> None:
    with JudgeServer() as server:
        results = _run(server, count=3, daily_usd=0.0)
        assert not server.requests
    assert {r.why for r in results if r.metric == "confidence"} <= {"over_budget", "no_content"}


def test_a_key_quoted_by_the_provider_is_removed_from_logs_jobs_and_results(
    caplog: pytest.LogCaptureFixture,
) -> None:
    key = "our-key/0123+no-shape"

    def quoting(number: int, body: dict[str, Any]) -> JudgeAnswer:
        message = (
            f"Incorrect API key provided: {key}\x1b[2J\u202e. Sent: Authorization: Bearer {key} " + "and so on " * 500
        )
        return JudgeAnswer(
            status=401, raw=json.dumps({"error": {"message": message, "type": "auth", "code": "bad"}}).encode()
        )

    composer, texts = Composer(5), list[str]()
    settings = EvaluatorSettings({"trace.confidence"}, judge=JudgeSettings(MODEL))
    with JudgeServer(quoting) as server:
        config = _setup(server)
        environ = {**os.environ, "JUDGE_KEY": key}
        evaluator = Evaluator(WordEmbedder(), settings)
        with TraceFiles() as run, ReplayJudge(run.store, evaluator, config, environ) as judge:
            for _ in range(3):
                run.add(Request(False, composer.trace().request().SerializeToString()))
            texts += [r.finding.reason for r in replay(run, evaluator, judge) if r.why == "judge_failed"]
            with open_database(run.store.path / FILE_NAME) as database:
                texts += [job.error for job in jobs.listed(database, "dead", 10)]
    texts += caplog.messages
    assert len(texts) >= 3
    for text in texts:
        assert "AuthenticationError" in text, "the type of error must be shown"
        assert key not in text
        assert len(text) < 700
        assert text.isprintable()


@pytest.mark.slow
@pytest.mark.parametrize("named", ["", f"model: {MODEL}, "])
def test_evaluate_exits_with_2_if_the_judge_answers_no_question(tmp_path: Path, named: str) -> None:
    traces, config = tmp_path / "traces.pb", tmp_path / "c.yaml"
    traces.write_bytes(Composer(5).trace().request().SerializeToString())
    with JudgeServer(lambda *_: JudgeAnswer("", status=500)) as server:
        config.write_text(f"judge: {{{named}api_base: '{server.url}', api_key_env: JUDGE_KEY}}\n")
        command = ["evaluate", str(traces), "--config", str(config), "--metrics", "confidence"]
        more = [] if named else ["--model", MODEL]
        done = CliRunner().invoke(app, [*command, *more], env={"JUDGE_KEY": "sk-test"})
    assert done.exit_code == 2, done.output
    assert f"judge model {MODEL}: " in done.stderr
    assert "0 of 1 questions were answered." in done.stderr
