"""What came of a run as JUnit XML, which CI systems show as tests: thresholds, failure groups and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TextIO
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pandaeval_collector.base.untrusted.printable import for_xml
from pandaeval_collector.store.failures import at_least
from pandaeval_lab.cli._gates import KEY, GateOutcome
from pandaeval_lab.cli._summary import Summary
from pandaeval_lab.replay.root_causes import RootCause


def write_junit(target: TextIO, gates: Sequence[GateOutcome], summary: Summary, least: str) -> None:
    """Writes three suites. A threshold, or the baseline, fails as in the command, and is skipped where it was not
    measured; a failure group fails from the severity ``least`` on; a metric without a configured threshold passes and
    states its mean."""
    gated = {gate.key for gate in gates}
    values = summary.values()
    suites = {
        "thresholds": gate_tests(gates),
        "failures": [_group(group, least) for group in summary.groups],
        "metrics": [_metric(key, value) for key, value in sorted(values.items()) if key not in gated],
    }
    write_suites(target, suites)


def write_suites(
    target: TextIO, suites: Mapping[str, Sequence[Element]], name: str = "pandaeval", prefix: str = "pandaeval "
) -> None:
    """Writes a JUnit document of suites: test cases by the name of their suite, behind a ``prefix``. ``name``: of all
    of them together."""

    def counted(cases: Sequence[Element]) -> dict[str, str]:
        failed, skipped = (str(sum(case.find(kind) is not None for case in cases)) for kind in ("failure", "skipped"))
        return {"tests": str(len(cases)), "failures": failed, "errors": "0", "skipped": skipped}

    root = Element("testsuites", {"name": for_xml(name), **counted([*chain.from_iterable(suites.values())])})
    for of, cases in suites.items():
        SubElement(root, "testsuite", {"name": for_xml(f"{prefix}{of}"), **counted(cases)}).extend(cases)
    indent(root)
    target.write('<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n")


def gate_tests(gates: Iterable[GateOutcome]) -> list[Element]:
    """Returns a JUnit test for each gate but that of all failures, which stand by their groups."""
    return [_threshold(gate) for gate in gates if gate.key != KEY]


def _case(suite: str, name: str) -> Element:
    return Element("testcase", classname=f"pandaeval.{suite}", name=for_xml(name), time="0")


def _threshold(gate: GateOutcome) -> Element:
    case = _case("thresholds", gate.key)
    if not gate.passed:
        failure = SubElement(case, "failure", message=for_xml(gate.text), type="threshold")
        failure.text = for_xml("\n".join((gate.text, *gate.examples)))
    elif gate.text:
        SubElement(case, "skipped", message=for_xml(gate.text))
    return case


def _group(group: RootCause, least: str) -> Element:
    case = _case("failures", f"[{group.severity}] {group.title}")
    places = "\n".join(f"{member.place}: {member.label}: {member.reason}" for member in group.examples)
    told = for_xml(f"{group.description}\n{group.count} occurrence(s)\n{places}")
    if least and at_least(group.severity, least):
        failure = SubElement(case, "failure", message=for_xml(f"{group.count} occurrence(s)"), type=group.severity)
        failure.text = told
    else:
        SubElement(case, "system-out").text = told
    return case


def _metric(key: str, value: float) -> Element:
    case = _case("metrics", key)
    SubElement(case, "system-out").text = f"mean {value:.4f}; no threshold is configured"
    return case
