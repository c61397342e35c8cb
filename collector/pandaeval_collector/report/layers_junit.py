"""The three-layer report as JUnit XML: a test case for each trial, so that build servers show what broke."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pandaeval_collector.report.layers import LayerReport, TrialRow

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: LayerReport) -> str:
    """A document with a suite for each kind of case. A trial that could not be told is skipped, and says why."""
    rows = report.trials
    root = Element("testsuites", {"name": _clean(report.suite or "pandaeval"), **_counts(rows)})
    for kind in sorted({row.kind for row in rows}):
        some = [row for row in rows if row.kind == kind]
        suite = SubElement(root, "testsuite", {"name": kind, **_counts(some)})
        for row in some:
            suite.append(_case(row))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _case(row: TrialRow) -> Element:
    name, place = _clean(f"{row.case} [{row.trial}]"), _clean(f"pandaeval.{row.kind}.{row.case}")
    case = Element("testcase", classname=place, name=name, time="0")
    properties = SubElement(case, "properties")
    told = {f"layer.{layer}": state for layer, state in row.to_dict()["layers"].items()}
    for key, value in {**told, "trace_ids": " ".join(row.to_dict()["trace_ids"])}.items():
        SubElement(properties, "property", name=key, value=_clean(value))
    if row.correct is False:
        failure = SubElement(case, "failure", type=row.broke or "trial", message=_clean(row.reason[:500]))
        failure.text = _clean("\n".join(_lines(row)))
    elif row.correct is None:
        SubElement(case, "skipped", message=_clean(row.reason[:500] or "no grader could tell"))
    return case


def _lines(row: TrialRow) -> list[str]:
    failed = [each for each in row.graders if each["success"] is False]
    return [f"{each['metadata']['layer']}: {each['metric']} {each['score']:.4f}: {each['reason']}" for each in failed]


def _counts(rows: list[TrialRow]) -> dict[str, str]:
    failures, skipped = (sum(row.correct is state for row in rows) for state in (False, None))
    return {"tests": str(len(rows)), "failures": str(failures), "errors": "0", "skipped": str(skipped)}


def _clean(text: str) -> str:
    """Without the characters that XML has no word for."""
    return _NOT_XML.sub("�", text)
