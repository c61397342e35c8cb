"""Docstring examples of public names run."""

from __future__ import annotations

import doctest
import inspect
import sys

import pytest

import pandaeval_collector
import pandaeval_lab
import pandaeval_otel

EXAMPLES = [
    test
    for package in (pandaeval_otel, pandaeval_collector, pandaeval_lab)
    for name in package.__all__
    if inspect.isroutine(value := getattr(package, name)) or inspect.isclass(value)
    for test in doctest.DocTestFinder().find(value, name, globs=vars(sys.modules[value.__module__]).copy())
    if test.examples
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_docstring_examples_print_the_documented_output(example: doctest.DocTest) -> None:
    assert doctest.DocTestRunner().run(example).failed == 0


def test_names_that_users_write_in_their_code_have_examples() -> None:
    assert {"PandaEvalSpanProcessor", "using_session", "metric", "judged", "Rubric", "Section", "Fault", "mocked"} <= {
        example.name for example in EXAMPLES
    }
