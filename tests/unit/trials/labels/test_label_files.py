"""Label files: forms and errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.config import MetricNames
from pandaeval_lab.labels.files import LabelTable, as_csv, as_json, read_labels, row_of
from pandaeval_otel.wire.labels import HumanLabel
from support.labels import TRACE

NAMES = MetricNames([("trace", "task_completion"), ("trace", "coherence"), ("session", "agent_reliability")])
KEY = "trace.task_completion"


def read(folder: Path, text: str | bytes, name: str = "labels.csv") -> LabelTable:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_labels(path, NAMES)


@pytest.mark.parametrize(
    ("word", "passed"), [("pass", True), ("Yes", True), ("TRUE", True), ("1", True), ("fail", False), ("no", False)]
)
def test_common_words_for_pass_and_fail_are_accepted(tmp_path: Path, word: str, passed: bool) -> None:
    found = read(tmp_path, f"trace_id,metric,label\n{TRACE},task_completion,{word}\n")
    assert found.labels == [HumanLabel(TRACE, KEY, None, passed)]


def test_a_file_saved_by_a_spreadsheet_is_read(tmp_path: Path) -> None:
    text = (
        "\ufeffTrace_ID;Metric;Score;Annotator;Time;Comment;Team\r\n"
        f'{TRACE.upper()};trace.task_completion;0.25;ada;2026-01-31T08:00:00+01:00;"wrong\r\nday";red\r\n\r\n'
    )
    found = read(tmp_path, text)
    assert found.labels == [HumanLabel(TRACE, KEY, 0.25, None, "ada", 1769842800.0, "wrong\nday")]
    assert (found.empty, found.ignored) == (0, ("team",))


def test_labels_are_read_from_json_lines(tmp_path: Path) -> None:
    text = (
        f'{{"trace_id": "{TRACE}", "metric": "task_completion", "label": true, "time": 1700000000, "score": 1}}\n\n'
        '{"session_id": "chat 7", "metric": "agent_reliability", "label": "fail", "probability": 0.25}\n'
    )
    assert read(tmp_path, text, "labels.txt").labels == [
        HumanLabel(TRACE, KEY, 1.0, True, "", 1_700_000_000.0),
        HumanLabel("chat 7", "session.agent_reliability", None, False, probability=0.25),
    ]


def test_rows_without_a_label_are_skipped_and_counted(tmp_path: Path) -> None:
    rows = f"{TRACE},task_completion,,\n{TRACE},task_completion,pass,\n"
    found = read(tmp_path, f"trace_id,metric,label,score\n{rows}")
    assert (len(found.labels), found.empty) == (1, 1)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("abc,task_completion,pass", "line 3: 'abc' is no trace id: 32 hex digits, as results have it in trace_id"),
        (f"{TRACE},task_completion,great", "line 3: 'great' is no verdict: write pass or fail, or a score from 0 to 1"),
        (f"{TRACE},task_competion,pass", "line 3: task_competion: unknown metric; did you mean task_completion?"),
        (f"{TRACE},,pass", "line 3: metric is empty; `pandaeval metrics` lists them"),
        (f"{TRACE},agent_reliability,pass", "line 3: session.agent_reliability is about a session: fill in session_id"),
        (f"{TRACE},task_completion,pass,7", "line 3: the score '7' is no number from 0 to 1 (of 1 to 5 stars:"),
        (
            f"{TRACE},task_completion,pass,,last week",
            "line 3: the time 'last week' is not a time such as 2026-01-31T08:00:00Z",
        ),
        (f"{TRACE},task_completion,pass,,,2", "line 3: the probability '2' is not a number from 0 to 1; keep"),
    ],
)
def test_an_error_names_its_line_and_no_label_is_imported(tmp_path: Path, row: str, message: str) -> None:
    good = f"{TRACE},task_completion,pass"
    with pytest.raises(UserError) as raised:
        read(tmp_path, f"trace_id,metric,label,score,time,probability\n{good}\n{row}\n{good}\n")
    assert message in str(raised.value)
    assert str(raised.value).endswith("No label of this file was imported.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trace_id,label\n", "line 1: no column metric. The first line must name columns: trace_id, session_id,"),
        ("metric,label\n", "line 1: no column trace_id or session_id."),
        ("metric,trace_id\n", "line 1: no column label or score."),
        ("", "line 1: no column"),
        ("metric,trace_id,label\n", "the file contains no labels"),
        (b"metric,trace_id,label\n\xff\xfe", "is not UTF-8 (byte 22): save it as"),
        ('{"metric": 1\n{}', "line 1: not a JSON object; write one in each line"),
        ("{" * 5000, "line 1: not a JSON object"),
    ],
)
def test_a_file_without_labels_is_an_error(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(UserError) as raised:
        read(tmp_path, text)
    assert message in str(raised.value)


def test_at_most_20_errors_are_listed(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        read(tmp_path, "trace_id,metric,label\n" + "x,task_completion,pass\n" * 30)
    assert "… and 10 more" in str(raised.value)


def test_csv_escapes_formulas_and_reads_them_back(tmp_path: Path) -> None:
    label = HumanLabel("=HYPERLINK(1)", "session.agent_reliability", None, True, comment="-1 for the tone")
    text = as_csv([row_of(label)])
    assert "'=HYPERLINK(1)" in text
    assert "'-1 for the tone" in text
    assert read(tmp_path, text).labels == [label]


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=30).map(str.strip)
some = st.builds(
    HumanLabel,
    unit=st.just(TRACE),
    metric=st.just(KEY),
    score=st.none() | st.floats(0, 1).map(lambda value: round(value, 6)),
    passed=st.booleans(),
    annotator=words.filter(str.isprintable),
    at=st.integers(0, 2_000_000_000).map(float),
    comment=words.filter(lambda text: not text.startswith("'")),
    probability=st.none() | st.integers(1, 100).map(lambda value: value / 100),
).filter(lambda label: label.score is None or abs(label.score - bool(label.passed)) <= 0.5)


@settings(max_examples=30, deadline=None)
@given(st.lists(some, min_size=1, max_size=5))
def test_written_labels_are_read_back_unchanged(
    tmp_path_factory: pytest.TempPathFactory, labels: list[HumanLabel]
) -> None:
    folder = tmp_path_factory.mktemp("labels")
    rows = [row_of(each) for each in labels]
    for text, name in ((as_csv(rows), "labels.csv"), (as_json(rows), "labels.jsonl")):
        assert read(folder, text, name).labels == labels


@pytest.mark.parametrize(("label", "score"), [("pass", 0.2), ("fail", 0.9)])
def test_a_verdict_that_contradicts_its_score_is_an_error(tmp_path: Path, label: str, score: float) -> None:
    with pytest.raises(UserError, match=rf"line 2: '{label}' and the score {score} contradict each other"):
        read(tmp_path, f"trace_id,metric,label,score\n{TRACE},task_completion,{label},{score}\n")


@pytest.mark.parametrize(("label", "score"), [("pass", 0.5), ("fail", 0.5), ("pass", 0.8), ("fail", 0.0)])
def test_a_verdict_with_a_matching_score_is_accepted(tmp_path: Path, label: str, score: float) -> None:
    found = read(tmp_path, f"trace_id,metric,label,score\n{TRACE},task_completion,{label},{score}\n")
    assert [(each.passed, each.score) for each in found.labels] == [(label == "pass", score)]
