"""The span processor's documentation matches the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import pandaeval_otel
from pandaeval_otel.processor.settings import VARIABLES

_DOCS = Path(__file__).parents[3] / "docs"
_TEXT = (_DOCS / "start" / "python.md").read_text()
_SNIPPETS = re.findall(r"```python\n(.*?)```", _TEXT, re.DOTALL)


def test_every_variable_is_documented() -> None:
    page = (_DOCS / "reference" / "configuration.md").read_text()
    assert [name for name in VARIABLES if f"`{name}`" not in page] == []


@pytest.mark.parametrize("snippet", _SNIPPETS)
def test_snippets_compile_and_import_only_public_names(snippet: str) -> None:
    tree = compile(snippet, "python.md", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    names = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "pandaeval_otel"
        for alias in node.names
    ]
    assert set(names) <= set(pandaeval_otel.__all__)


def test_every_public_name_of_the_processor_is_documented_and_importable() -> None:
    listed = [names for module, names in pandaeval_otel._NAMES.items() if module.startswith("processor.")]
    names = " ".join(listed).split()
    assert [name for name in names if name not in _TEXT] == []
    assert all(callable(getattr(pandaeval_otel, name)) for name in names)


@pytest.mark.parametrize(
    "framework", ["openai", "anthropic", "langgraph", "openai-agents", "pydantic-ai", "strands", "crewai", "google-adk"]
)
def test_the_snippet_of_each_framework_has_at_most_five_lines(framework: str) -> None:
    section = _TEXT.split(f"\n### {framework}\n")[1].split("\n#")[0]
    (snippet,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len([line for line in snippet.splitlines() if line]) <= 5
