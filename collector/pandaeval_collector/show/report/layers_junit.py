"""The three-layer report as JUnit XML: a test case for each trial, so that build servers show what broke."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pandaeval_collector.show.report.layer_counts import TrialCount
from pandaeval_collector.show.report.layers import LayerReport

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_lines(report: LayerReport) -> Iterator[str]:
    """Yields a JUnit document in pieces, with a suite for each kind of case. A trial that could not be told is skipped,
    with the reason."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield _opened(Element("testsuites", {"name": _clean(report.suite or "pandaeval"), **_counts(report.whole)}))
    for kind, count in report.kinds.items():
        yield "  " + _opened(Element("testsuite", {"name": kind, **_counts(count)}))
        for case in report.cases_of(kind):
            for row in report.trials(case):
                made = _case(case, kind, row)
                indent(made, level=2)
                yield f"    {tostring(made, encoding='unicode')}\n"
        yield "  </testsuite>\n"
    yield "</testsuites>\n"


def _opened(element: Element) -> str:
    """Returns the start tag of an element."""
    return tostring(element, encoding="unicode").removesuffix(" />") + ">\n"


def _case(name: str, kind: str, row: Mapping[str, Any]) -> Element:
    shown, place = _clean(f"{name} [{row['trial']}]"), _clean(f"pandaeval.{kind}.{name}")
    case = Element("testcase", classname=place, name=shown, time="0")
    properties = SubElement(case, "properties")
    told = {f"layer.{layer}": state for layer, state in row["layers"].items()}
    for key, value in {**told, "trace_ids": " ".join(row["trace_ids"])}.items():
        SubElement(properties, "property", name=key, value=_clean(value))
    if row["correct"] is False:
        failure = SubElement(case, "failure", type=row["broke"] or "trial", message=_clean(row["reason"][:500]))
        failure.text = _clean("\n".join(_lines(row)))
    elif row["correct"] is None:
        SubElement(case, "skipped", message=_clean(row["reason"][:500] or "no grader could tell"))
    return case


def _lines(row: Mapping[str, Any]) -> list[str]:
    failed = [each for each in row["graders"] if each["success"] is False]
    return [f"{each['layer']}: {each['metric']} {each['score']:.4f}: {each['reason']}" for each in failed]


def _counts(count: TrialCount) -> dict[str, str]:
    failures, skipped = (str(count.correct[state]) for state in (False, None))
    return {"tests": str(count.trials), "failures": failures, "errors": "0", "skipped": skipped}


def _clean(text: str) -> str:
    """Returns the text with every character that XML cannot hold replaced by U+FFFD."""
    return _NOT_XML.sub("�", text)
