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
def test_an_example_gives_what_it_says(example: doctest.DocTest) -> None:
    assert doctest.DocTestRunner().run(example).failed == 0


def test_what_people_write_themselves_has_an_example() -> None:
    assert {"PandaEvalSpanProcessor", "using_session", "metric", "judged", "Rubric", "Section", "Fault", "mocked"} <= {
        example.name for example in EXAMPLES
    }
