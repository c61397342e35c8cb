"""Answers to twelve tasks need few clicks and words."""

from __future__ import annotations

import pytest

from support.reader_tasks import ROOT, TASKS, words

_MOST_CLICKS, _MOST_WORDS = 3, 1600


@pytest.mark.parametrize("task", TASKS)
def test_an_answer_needs_few_clicks_and_words(task: str) -> None:
    assert len(TASKS[task]) <= _MOST_CLICKS
    assert words(task) <= _MOST_WORDS


def test_the_page_lists_every_task() -> None:
    page = (ROOT / "docs/internals/reader-tasks.md").read_text(encoding="utf-8")
    assert [task for task in TASKS if f"| {task} |" not in page] == []
