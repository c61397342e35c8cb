"""The arena: draws, records, replies, resumption."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lab import arena
from lab._arena_figures import agrees, auroc, comparison, figures, interval
from lab._arena_sets import Unit, distance, draw, neutral_line, traces_of, units
from lab._mailbox import Folder, Mailbox, letter
from lab._sessions import is_even

NONCE, ECHO = "0123456789ab", "89abcdef"


def population(number: int = 200, pairs: bool = False) -> list[Unit]:
    return [Unit(f"run-{at}", at % 3 != 0, pair=f"pair-{at // 2}" if pairs else "") for at in range(number)]


def guessed(truths: list[bool]) -> list[int]:
    """Count right guesses from the place in a draw: true ones first, every second one true, equal neighbours."""
    half = len(truths) // 2
    first = sum(truths[:half]) + truths[half:].count(False)
    second = sum(truths[::2]) + truths[1::2].count(False)
    return [first, second, sum(one == other for one, other in pairwise(truths))]


class TestDraw:
    def test_a_draw_has_as_many_right_as_wrong_runs_all_of_the_half(self) -> None:
        drawn = draw(population(), "dev", 30, 7)
        assert sum(unit.truth for unit in drawn) == 15
        assert len({unit.id for unit in drawn}) == 30
        assert all(is_even(unit.id) for unit in drawn)
        assert not any(is_even(unit.id) for unit in draw(population(), "held", 30, 7))

    def test_the_seed_decides_the_draw(self) -> None:
        assert draw(population(), "dev", 30, 7) == draw(population(), "dev", 30, 7)
        assert {unit.id for unit in draw(population(), "dev", 30, 7)} != {
            unit.id for unit in draw(population(), "dev", 30, 8)
        }

    def test_a_larger_draw_contains_the_smaller_draw(self) -> None:
        assert set(draw(population(), "dev", 20, 7)) < set(draw(population(), "dev", 40, 7))

    def test_a_draw_stays_balanced_if_one_kind_is_rare(self) -> None:
        rare = [Unit(f"run-{at}", at > 20) for at in range(400)]
        drawn = draw(rare, "dev", 100, 7)
        assert 0 < len(drawn) < 40
        assert sum(unit.truth for unit in drawn) * 2 == len(drawn)

    @pytest.mark.parametrize("pairs", [False, True])
    def test_the_order_of_a_draw_does_not_reveal_the_truth(self, pairs: bool) -> None:
        drawn = [[unit.truth for unit in draw(population(pairs=pairs), "dev", 20, seed)] for seed in range(200)]
        total = sum(map(len, drawn))
        assert total > 2000
        for right in map(sum, zip(*map(guessed, drawn), strict=True)):
            assert 0.4 * total < right < 0.6 * total

    def test_pairs_are_drawn_complete_and_within_the_half(self) -> None:
        sides = [Unit(f"run-{at}", at % 2 == 0, pair=f"pair-{at // 2}") for at in range(400)]
        drawn = draw(sides, "dev", 20, 7)
        pairs = [unit.pair for unit in drawn]
        assert len(drawn) == 20
        assert all(pairs.count(pair) == 2 for pair in pairs)
        assert all(is_even(unit.id) for unit in drawn)

    def test_the_default_half_is_dev(self) -> None:
        assert arena.options(["bfcl", "--questions", "q.txt"]).half == "dev"
        assert arena.options(["bfcl", "--questions", "q.txt", "--half", "held"]).half == "held"

    def test_units_are_built_from_label_rows(self) -> None:
        rows = [
            {"session_id": "a", "trace_id": None, "name": "task_success", "value": False},
            {
                "session_id": "a",
                "trace_id": "t",
                "name": "failure",
                "value": "Slip",
                "root_cause": True,
                "span_id": "s",
            },
            {"session_id": "b", "trace_id": None, "name": "task_success", "value": True},
            {"session_id": "b", "trace_id": None, "name": "shape", "value": "lean"},
        ]
        assert units("agentrx-tau", rows) == [Unit("a", False, "Slip", "", ("s",)), Unit("b", True, "lean")]
        row = {"session_id": None, "trace_id": "t", "name": "tool_calls_correct", "value": True, "category": "simple"}
        assert units("bfcl", [{**row, "item": "simple_7"}]) == [Unit("t", True, "simple", case="simple_7")]

    def test_one_run_of_a_case_is_drawn_and_all_its_runs_are_in_one_half(self) -> None:
        runs = [Unit(f"run-{at}", at % 3 != 0, case=f"case-{at // 2}") for at in range(400)]
        dev, held = ({unit.case for unit in draw(runs, half, 60, 7)} for half in ("dev", "held"))
        assert len(dev) == len(held) == 60
        assert not dev & held


def text(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def span(trace: str, number: int, name: str, at: int, parent: int = 0, **attributes: str) -> dict[str, Any]:
    times = {"startTimeUnixNano": str(at), "endTimeUnixNano": str(at + 10)}
    held = [text("gen_ai.operation.name", name.partition(" ")[0]), text("gen_ai.conversation.id", "tau-airline-task0")]
    held += [text(f"gen_ai.{key.replace('__', '.')}", value) for key, value in attributes.items()]
    above = {"parentSpanId": f"{parent:016x}"} if parent else {}
    return {"traceId": trace, "spanId": f"{number:016x}", **above, "name": name, **times, "attributes": held}


def said(role: str, words: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": words}]}])


def turn(number: int, start: int) -> str:
    trace, first = f"{number:032x}", 10 * number
    user, answer = said("user", "book it"), said("assistant", "done")
    spans = [
        span(trace, first, "invoke_agent tau-airline", start, agent__name="tau-airline-agent", input__messages=user,
             output__messages=answer),
        span(trace, first + 1, "chat gpt", start + 1, first, input__messages=user),
        span(trace, first + 2, "execute_tool book", start + 20, first, tool__name="book", tool__call__arguments="{}",
             tool__call__result='"booked"'),
        span(trace, first + 3, "chat gpt", start + 40, first, output__messages=answer),
    ]  # fmt: skip
    resource = {"attributes": [text("service.name", "tau-airline-agent"), text("dataset", "tau-bench")]}
    scope = {"scope": {"name": "reference-data.tau-bench", "version": "1"}, "spans": spans}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]})


SECOND = 1_748_736_000_000_000_000
SESSION = [turn(1, SECOND), turn(2, SECOND + 1000)]


class TestNoHints:
    def test_names_of_set_service_agent_and_session_are_removed_and_messages_stay(self) -> None:
        clean = neutral_line(SESSION[0])
        assert "tau" not in clean
        assert "dataset" not in clean
        assert "book it" in clean
        assert json.loads(clean)["resourceSpans"][0]["scopeSpans"][0]["spans"][1]["name"] == "chat gpt"

    def test_traces_of_a_session_stay_together_under_another_name(self) -> None:
        names = {trace.session_id for trace in traces_of(map(neutral_line, SESSION))}
        assert len(names) == 1
        assert names != {"tau-airline-task0"}


class TestFirstWrongStep:
    def test_all_forms_of_a_step_are_read(self) -> None:
        assert [arena.step_of(value) for value in (7, "7", "call 7", "turn 2", None, "none", True)] == [
            "7", "7", "7", "turn 2", None, None, None,
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("step", "apart"), [("1", 1), ("2", 3), ("turn 1", 0), ("turn 2", 4), ("9", None), (None, None)]
    )
    def test_distance_to_the_labelled_span_is_counted_in_spans(self, step: str | None, apart: int | None) -> None:
        unit = Unit("a", False, steps=(f"{13:016x}",))
        assert distance(unit, step, traces_of(SESSION)) == apart


def messages(
    record: str, question: str = "Was it right?", nonce: str = NONCE, echo: str = ECHO
) -> list[dict[str, str]]:
    return [
        {"role": "system", "content": "You evaluate."},
        {"role": "user", "content": f"# Criteria\n{question}"},
        {"role": "user", "content": f"# Run\n## 1. RECORD\n<<{nonce}>>\n{record}\n<</{nonce}>>"},
        {"role": "user", "content": f'# Question\nJudge this run.\n\nSet "echo" to {echo}.'},
    ]


def ask(url: str, asked: Sequence[dict[str, str]]) -> str | None:
    """Question the endpoint as the judge does; ``None`` if refused."""
    body = json.dumps({"model": "reader", "messages": asked}).encode()
    sent = urllib.request.Request(f"{url}/chat/completions", body, {"content-type": "application/json"})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sent) as response:
            content: str = json.load(response)["choices"][0]["message"]["content"]
            return content
    except urllib.error.HTTPError as error:
        return None if (error.code, b"content_policy_violation" in error.read()) == (400, True) else "another error"


class TestMailbox:
    def test_a_request_becomes_a_file_and_its_reply_file_the_answer(self, tmp_path: Path) -> None:
        with Mailbox(Folder(tmp_path)) as mailbox:
            assert ask(mailbox.url, messages("a run")) is None
            shown = (tmp_path / "001.request.txt").read_text()
            assert "a run" in shown
            assert NONCE not in shown
            code = shown.rpartition("to ")[2][:8]
            (tmp_path / "001.reply.json").write_text(json.dumps({"completed": True, "echo": code}))
            assert json.loads(ask(mailbox.url, messages("a run")) or "") == {"completed": True, "echo": ECHO}

    def test_requests_that_differ_only_in_codes_share_one_file(self, tmp_path: Path) -> None:
        folder = Folder(tmp_path)
        first, again = letter(messages("a run")), letter(messages("a run", nonce="ba9876543210", echo="01234567"))
        assert folder.post(first.text) == folder.post(again.text) == "001"
        assert again.put_back(first.text.rpartition("to ")[2]) == "01234567."
        assert folder.post(letter(messages("another run")).text) == "002"

    def test_a_restart_finds_earlier_requests_and_replies(self, tmp_path: Path) -> None:
        first = Folder(tmp_path)
        for record in ("one\r\n", "two"):
            first.post(letter(messages(record)).text)
        (tmp_path / "002.reply.json").write_text('{"a": 1}')
        again = Folder(tmp_path)
        assert [again.post(letter(messages(record)).text) for record in ("two", "one\r\n", "three")] == [
            "002", "001", "003",
        ]  # fmt: skip
        assert again.waiting(["001", "002", "003"]) == ["001", "003"]

    @pytest.mark.parametrize(
        "content",
        [
            '{"correct": true}',
            '{"choices": [{"message": {"content": "{\\"correct\\": true}"}}], "model": "m"}',
            '{"choices": [{"message": {"content": {"correct": true}}}]}',
            '"{\\"correct\\": true}"',
        ],
    )
    def test_replies_can_be_plain_objects_or_completions(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "001.request.txt").write_text("?")
        (tmp_path / "001.reply.json").write_text(content)
        assert json.loads(Folder(tmp_path).reply("001") or "") == {"correct": True}

    def test_an_incomplete_reply_is_read_only_when_it_no_longer_changes(self, tmp_path: Path) -> None:
        (tmp_path / "001.request.txt").write_text("?")
        file = tmp_path / "001.reply.json"
        file.write_text('{"correct": tr')
        assert Folder(tmp_path).reply("001") is None
        os.utime(file, (time.time() - 60,) * 2)
        assert Folder(tmp_path).reply("001") == '{"correct": tr'

    def test_the_name_of_the_reader_comes_from_a_file(self, tmp_path: Path) -> None:
        folder = Folder(tmp_path)
        assert folder.reader == ""
        (tmp_path / "reader.txt").write_text("Ada\n")
        assert folder.reader == "Ada"


def file_question(folder: Path, words: str = "Did it go well? Answer with one JSON object.") -> arena.FileQuestion:
    path = folder / "question.txt"
    path.write_text(words + "\n")
    return arena.FileQuestion(path)


REPLY = {"things": [], "first_wrong_step": "call 3", "reason": "no refund", "correct": False, "sure": 12}


class TestQuestionOfAFile:
    def test_readers_see_only_the_record_and_the_question(self, tmp_path: Path) -> None:
        question = file_question(tmp_path)
        made = question.rewrite(messages("a run", question.text))
        assert made is not None
        shown, content = made
        assert shown.text.endswith("\n\n######## USER\n" + question.text)
        assert "a run" in shown.text
        assert "echo" not in shown.text
        assert json.loads(content(json.dumps(REPLY))) == {
            "reason": "no refund", "first_wrong_step": "3", "correct": False, "sure": 12.0, "instructed": False,
            "echo": ECHO,
        }  # fmt: skip

    def test_other_questions_are_not_rewritten(self, tmp_path: Path) -> None:
        assert file_question(tmp_path).rewrite(messages("a run", "Something else?")) is None

    @pytest.mark.parametrize(
        "wrong",
        [
            "words",
            '{"correct": true}',
            '{"correct": "yes", "sure": 1}',
            '{"correct": true, "sure": 101}',
            '{"correct": true, "sure": true}',
        ],
    )
    def test_an_invalid_reply_is_reported_to_the_reader_until_fixed(self, tmp_path: Path, wrong: str) -> None:
        question = file_question(tmp_path)
        folder = Folder(tmp_path / "box", question.problem)
        name = folder.post(question.text)
        (folder.path / "001.reply.json").write_text(json.dumps(wrong))
        assert folder.waiting([name]) == [name]
        assert (folder.path / "001.problem.txt").read_text().startswith("001.reply.json: ")
        (folder.path / "001.reply.json").write_text(json.dumps(REPLY))
        assert folder.waiting([name]) == []
        assert not (folder.path / "001.problem.txt").exists()

    def test_the_prompt_version_depends_on_the_text_of_the_question(self, tmp_path: Path) -> None:
        first = file_question(tmp_path).prompt
        assert file_question(tmp_path, "Did it go badly?").prompt != first
        assert file_question(tmp_path).prompt == first


class Interrupted(Exception):
    """A stopped arena."""


class TestAsking:
    """A stand-in for ``pandaeval evaluate``."""

    def results(self, mailbox: Mailbox, question: str) -> list[dict[str, Any]]:
        made = []
        for unit in ("a", "b"):
            reply = ask(mailbox.url, messages(f"run {unit}", question, nonce=os.urandom(6).hex()))
            verdict = json.loads(reply) if reply else None
            made.append(
                {
                    "session_id": arena.opaque(unit),
                    "trace_id": "t",
                    "level": "session",
                    "metric": "arena_question",
                    "score": verdict and verdict["sure"] / 100,
                    "success": None,
                    "metadata": {"judge": {"pack": unit}, **(verdict or {})},
                }
            )
        return made

    def reader(self, folder: Path, correct: Callable[[str], bool]) -> Callable[[set[str]], None]:
        """Answer open questions."""

        def read(names: set[str]) -> None:
            for name in names:
                text = (folder / f"{name}.request.txt").read_text()
                verdict = correct(text)
                reply = {**REPLY, "correct": verdict, "sure": 90 if verdict else 10}
                (folder / f"{name}.reply.json").write_text(json.dumps(reply))

        return read

    def test_an_interrupted_arena_resumes_and_its_files_contain_no_label(self, tmp_path: Path) -> None:
        question, box = file_question(tmp_path), tmp_path / "box"
        questions = arena.Questions((), question, "session")

        def stop(names: set[str]) -> None:
            (box / "001.reply.json").write_text(json.dumps({**REPLY, "correct": True, "sure": 80}))
            raise Interrupted

        with Mailbox(Folder(box, question.problem), questions.rewrite) as mailbox, pytest.raises(Interrupted):
            arena.asked(lambda: self.results(mailbox, question.text), mailbox, stop)
        folder = Folder(box, question.problem)
        with Mailbox(folder, questions.rewrite) as mailbox:
            wait = self.reader(box, lambda text: False)

            def rest(names: set[str]) -> None:
                wait({*folder.waiting(sorted(names))})

            results = arena.asked(lambda: self.results(mailbox, question.text), mailbox, rest)
        drawn = [Unit("a", True, "airline"), Unit("b", True, "retail")]
        sitting = arena.Sitting("tau-bench", "dev", "", "Ada", "abc", "2026-01-01")
        rows = arena.rows_of(sitting, drawn, questions, results)
        assert [(row["score"], row["correct"], row["first_wrong_step"]) for row in rows] == [
            (0.8, True, "3"), (0.1, False, "3"),
        ]  # fmt: skip
        assert sorted(file.name for file in box.iterdir()) == [
            "001.reply.json", "001.request.txt", "002.reply.json", "002.request.txt", "README.txt",
        ]  # fmt: skip
        seen = "".join(file.read_text() for file in box.iterdir())
        assert not any(hint in seen for hint in ("tau-bench", "airline", "truth", "label", "dev half", "session"))
        assert "run a" not in json.dumps(rows)
        assert arena.new_rows(rows, rows[:1]) == rows[1:]

    def test_a_reply_during_the_command_is_in_the_results(self, tmp_path: Path) -> None:
        question, box = file_question(tmp_path), tmp_path / "box"
        folder, questions = Folder(box, question.problem), arena.Questions((), question, "session")
        read = self.reader(box, lambda text: True)
        with Mailbox(folder, questions.rewrite) as mailbox:

            def run() -> list[dict[str, Any]]:
                results = self.results(mailbox, question.text)
                read({*folder.names})
                return results

            results = arena.asked(run, mailbox, lambda names: arena.wait_for_replies(folder, names))
        assert [result["score"] for result in results] == [0.9, 0.9]

    def test_other_questions_of_the_command_are_not_shown_to_the_reader(self, tmp_path: Path) -> None:
        questions = arena.Questions(("session.goal_completion",), None, "session")
        folder = Folder(tmp_path)
        with Mailbox(folder, questions.rewrite) as mailbox:
            assert ask(mailbox.url, messages("failures", arena.grouping.RUBRIC.text.strip())) is None
            assert folder.names == []
            assert ask(mailbox.url, messages("a run", "Was the goal completed?")) is None
            assert folder.names == ["001"]


def row(session: str, truth: bool, score: float | None, **more: Any) -> dict[str, Any]:
    about = {"session": session, "set": "s", "half": "dev", "question": "q", "prompt": "1", "reader": "Ada", "pair": ""}
    correct = None if score is None else score >= 0.5
    return {**about, "truth": truth, "score": score, "correct": correct, "kind": "k", "date": "2026-01-01", **more}


class TestFigures:
    rows = (row("a", True, 0.9), row("b", True, 0.4), row("c", False, 0.4), row("d", False, 0.1), row("e", True, None))

    def test_auroc_counts_ordered_pairs_and_half_of_the_ties(self) -> None:
        assert auroc(self.rows) == pytest.approx((1 + 1 + 0.5 + 1) / 4)
        assert auroc(self.rows[:2]) is None

    def test_the_interval_contains_the_auroc_and_is_repeatable(self) -> None:
        many = [row(str(at), at % 2 == 0, (at * 37 % 100) / 200 + (at % 2 == 0) / 4) for at in range(40)]
        low, high = interval(many) or (1.0, 0.0)
        assert low < (auroc(many) or 0.0) < high
        assert interval(many) == (low, high)
        assert interval(self.rows[2:]) is None

    def test_a_missing_verdict_counts_as_disagreement(self) -> None:
        assert [agrees(each) for each in self.rows] == [True, False, True, True, False]
        shown = "\n".join(figures(self.rows))
        assert "agrees with the truth: 3 of 5 (0.60, " in shown
        assert "1 without a verdict" in shown
        assert "  k: 1, 1 | 2, 0 | 1" in shown

    def test_figures_of_pairs_and_steps_are_shown(self) -> None:
        sides = [row("a", True, 0.9, pair="1"), row("b", False, 0.2, pair="1"), row("c", True, 0.3, pair="2"),
                 row("d", False, 0.3, pair="2", named_step=True, apart=3), row("e", False, 0.1, named_step=True,
                 apart=None)]  # fmt: skip
        shown = "\n".join(figures(sides))
        assert "the chosen one scores higher, ties count half: 1.5 of 2" in shown
        assert "of 2 runs with one, in spans: within 1 0, within 3 1" in shown

    def test_two_prompts_are_compared_on_their_common_runs(self) -> None:
        old = [row(str(at), at % 2 == 0, 0.6) for at in range(10)]
        new = [row(str(at), at % 2 == 0, 0.6 if at % 2 == 0 else 0.2, prompt="2") for at in range(2, 14)]
        shown = [*comparison([*old, *new])]
        assert shown[-1] == (
            "- s, dev: q 1 by Ada -> q 2 by Ada: agrees 4 -> 8 of 8 (4 mended, 0 broken), "
            "AUROC 0.50 (0.50 to 0.50) -> 1.00 (1.00 to 1.00)"
        )

    def test_the_ledger_contains_no_long_texts(self) -> None:
        for line in arena.lines(arena.LEDGER):
            assert all(not isinstance(value, str) or len(value) < 60 for value in line.values())


# An answer to the conversation question, which goal_completion shares with other metrics.
GOAL = {"things": [], "broken_rules": [], "misstatements": [], "first_wrong_step": None, "reason": "r", "correct": True}
GOAL |= {"sure": 90, "goal_completed": True, "friction": "none", "friction_turns": [], "instructed": False}


@pytest.mark.slow
def test_the_evaluate_command_sends_the_judges_record_to_the_reader(tmp_path: Path) -> None:
    """Runs ``pandaeval evaluate`` with a scripted reader."""
    question, box = file_question(tmp_path), tmp_path / "box"
    questions = arena.Questions(("session.goal_completion",), question, "session")
    traces = tmp_path / "traces.jsonl"
    traces.write_text("".join(neutral_line(line) + "\n" for line in SESSION))
    folder = Folder(box, question.problem)

    def read() -> None:
        for name in folder.waiting(folder.names):
            text = folder.request(name)
            goal = {**GOAL, "echo": text[-9:-1]}
            (box / f"{name}.reply.json").write_text(json.dumps(REPLY if text.endswith(question.text) else goal))

    with Mailbox(folder, questions.rewrite) as mailbox:
        results = arena.asked(
            lambda: arena.evaluate(traces, questions, mailbox.url),
            mailbox,
            lambda names: read(),
        )
    assert folder.names == ["001", "002"]
    assert all("call 1: book" in folder.request(name) for name in folder.names)
    assert {result["metric"]: result["score"] for result in results} == {"goal_completion": 1.0, "arena_question": 0.12}
