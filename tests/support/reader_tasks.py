"""Twelve reader tasks: pages from README to each answer.

``python tests/support/reader_tasks.py`` prints clicks and words.
"""

from __future__ import annotations

import os
import re
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
_INDEX = "docs/index.md"
TASKS: dict[str, tuple[str, ...]] = {
    "score a LangGraph agent": (_INDEX, "docs/start/langgraph.md#details"),
    "use an existing Collector and Grafana": ("docs/start/otel-collector.md#5-find-failed-runs",),
    "answer an alert at night": (_INDEX, "docs/operate/runbook.md#alert-judge-down"),
    "set up a judge": ("docs/guides/judge.md#start",),
    "fail a build in CI": ("docs/guides/ci.md#threshold-gate",),
    "review the security": ("SECURITY.md#data-on-disk",),
    "score a TypeScript agent": (_INDEX, "docs/start/typescript.md#other-otlp-senders"),
    "size for 10,000 spans per second": (_INDEX, "docs/operate/sizing.md#table"),
    "export results": (_INDEX, "docs/guides/export.md#json-lines"),
    "delete a user's data": (_INDEX, "docs/guides/delete-data.md#delete-everything"),
    "add a metric": (_INDEX, "docs/guides/custom-metrics.md#python"),
    "add a dialect": ("CONTRIBUTING.md#add-a-dialect",),
}
"""Pages after README; the last page has the answer's heading."""


def words(task: str) -> int:
    """Count the words on the way. Raises ``AssertionError`` for a missing link."""
    pages = ("README.md", *TASKS[task])
    before = [_before_link(page, to.partition("#")[0]) for page, to in pairwise(pages)]
    return sum(before) + _to_the_end_of(*pages[-1].split("#"))


def _before_link(page: str, to: str) -> int:
    text = (ROOT / page).read_text(encoding="utf-8")
    link = f"]({os.path.relpath(to, Path(page).parent)}"
    assert link in text, f"{page} has no link to {to}"
    return len(text.partition(link)[0].split())


def _to_the_end_of(page: str, anchor: str) -> int:
    count, inside = 0, False
    for section in re.split(r"^(?=#)", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE):
        title = section.partition("\n")[0].lstrip("# ").lower()
        if inside:
            return count
        inside = re.sub(r"[^\w -]", "", title).replace(" ", "-") == anchor
        count += len(section.split())
    assert inside, f"{page} has no heading {anchor}"
    return count


if __name__ == "__main__":
    print("| task | answer | clicks | words |\n|---|---|--:|--:|")
    for name, path in TASKS.items():
        print(f"| {name} | [{path[-1]}](../../{path[-1]}) | {len(path)} | {words(name)} |")
