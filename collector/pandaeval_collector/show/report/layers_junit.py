"""The three-layer report as JUnit XML: a test case for each trial, so that build servers show what broke."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pandaeval_collector.base.untrusted.printable import for_xml
from pandaeval_collector.show.report.layers import LayerReport, TrialCount


def junit_lines(report: LayerReport) -> Iterator[str]:
    """Yields a JUnit document in pieces, with a suite for each kind of case. A trial that could not be told is skipped,
    with the reason."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield _opened(Element("testsuites", {"name": for_xml(report.suite or "pandaeval"), **_counts(report.whole)}))
    for kind, count in report.kinds.items():
        yield "  " + _opened(Element("testsuite", {"name": kind, **_counts(count)}))
        for case in (case for case, count in report.cases().items() if count.kind == kind):
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
    shown, place = for_xml(f"{name} [{row['trial']}]"), for_xml(f"pandaeval.{kind}.{name}")
    case = Element("testcase", classname=place, name=shown, time="0")
    properties = SubElement(case, "properties")
    told = {f"layer.{layer}": state for layer, state in row["layers"].items()}
    for key, value in {**told, "trace_ids": " ".join(row["trace_ids"])}.items():
        SubElement(properties, "property", name=key, value=for_xml(value))
    if row["correct"] is False:
        failure = SubElement(case, "failure", type=row["broke"] or "trial", message=for_xml(row["reason"][:500]))
        failed = (each for each in row["graders"] if each["success"] is False)
        lines = (f"{each['layer']}: {each['metric']} {each['score']:.4f}: {each['reason']}" for each in failed)
        failure.text = for_xml("\n".join(lines))
    elif row["correct"] is None:
        SubElement(case, "skipped", message=for_xml(row["reason"][:500] or "no grader could tell"))
    return case


def _counts(count: TrialCount) -> dict[str, str]:
    failures, skipped = (str(count.correct[state]) for state in (False, None))
    return {"tests": str(count.trials), "failures": failures, "errors": "0", "skipped": skipped}
