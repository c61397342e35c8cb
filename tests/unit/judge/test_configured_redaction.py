"""Redaction by configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.jobs.job_traces import JobTraceLoader
from pandaeval_collector.jobs.redaction import hider
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.store import Store
from pandaeval_otel.model import Trace
from support.embedder import WordEmbedder
from support.judged import stored, trace
from support.line import in_session
from support.made_traces import Composer

SECRET = "ghp_" + "a1B2c3D4" * 5


def test_there_is_no_redaction_if_it_is_switched_off() -> None:
    assert hider(JudgeSettings("m", secrets=False)) is None


def test_secrets_personal_data_and_custom_functions_are_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "house_rules.py").write_text(
        "def no_projects(text):\n    return text.replace('Bluebird', '[project]')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    hide = hider(JudgeSettings("m", pii=True, custom=("house_rules:no_projects",)))
    assert hide is not None
    said = hide(f"{SECRET} of ann@example.org for Bluebird")
    assert said == "[secret: github token] of [personal: e-mail address] for [project]"


@pytest.mark.parametrize("name", ["no.such.module:f", "json:no_such_function", "json:decoder", "json", ":f"])
def test_an_invalid_custom_function_is_rejected(name: str) -> None:
    with pytest.raises(UserError, match=r"redact\.custom"):
        hider(JudgeSettings("m", custom=(name,)))


def test_redaction_settings_are_part_of_the_question_id() -> None:
    def id_of(**fields: object) -> str:
        judge = JudgeSettings("m", **fields)  # type: ignore[arg-type]
        evaluator = Evaluator(WordEmbedder(), EvaluatorSettings({"trace.confidence"}, judge=judge))
        return evaluator.judged.questions(trace())[1][0].id

    assert len({id_of(), id_of(secrets=False), id_of(pii=True), id_of(custom=("a:b",))}) == 4


def test_messages_of_earlier_traces_are_shown_and_redacted(tmp_path: Path) -> None:
    composer = Composer(5, sessions=1)
    made = [composer.trace(4) for _ in range(6)]
    first, later = (in_session(each, "s") for each in (made[0], made[-1]))
    store = Store(tmp_path, "off")
    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings({"trace.confidence"}, judge=JudgeSettings("m", delay=0.0)))
    store.commit(Line(store.reads, evaluator).decide([stored(store, first), stored(store, later)]).changes).result()
    jobs = {job.trace_id: job for job in store.jobs.lease(1e12, 2).result()}
    loader = JobTraceLoader(store.reads, b"secret", lambda text: text.replace(" ", "_"))
    own, after = loader(jobs[first.trace_id]), loader(jobs[later.trace_id])
    loader.close()
    store.close()
    assert isinstance(own.subject, Trace)
    assert own.subject.output
    assert "CONVERSATION BEFORE" not in own.pack.text
    [turn] = own.subject.turns
    assert f"user: {turn.user}" in after.pack.text
    assert f"agent: {turn.assistant}" in after.pack.text
    assert after.pack.last_said == turn.assistant
    assert " " not in after.pack.last_said


def test_metrics_see_only_redacted_messages(tmp_path: Path) -> None:
    store = Store(tmp_path, "off")
    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings({"trace.confidence"}, judge=JudgeSettings("m", delay=0.0)))
    store.commit(Line(store.reads, evaluator).decide([stored(store, Composer(5).trace())]).changes).result()
    [job] = store.jobs.lease(1e12, 1).result()
    packer = JobTraceLoader(store.reads, b"secret", lambda text: "█" * len(text))
    packed = packer(job)
    packer.close()
    store.close()
    assert isinstance(packed.subject, Trace)
    assert set(packed.subject.output or "") == set(packed.subject.input or "") == {"█"}
    assert all(set(turn.user or "") == {"█"} for turn in packed.subject.turns)
