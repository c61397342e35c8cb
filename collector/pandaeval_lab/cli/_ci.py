"""Reports a run to CI systems: JUnit XML and GitHub's annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TextIO
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pandaeval_collector.base.untrusted.printable import for_xml
from pandaeval_collector.store.failures import at_least
from pandaeval_lab.cli._gates import CASE, KEY, GateOutcome
from pandaeval_lab.cli._summary import Summary
from pandaeval_lab.replay.root_causes import RootCause


def write_junit(
    target: TextIO,
    gates: Sequence[GateOutcome],
    summary: Summary,
    least: str,
    cases: Mapping[str, Sequence[Element]] | None = None,
) -> None:
    """Write ``cases``, thresholds, failure groups and, without cases, metrics as suites.

    A failure group fails at the severity ``least`` or a higher severity.
    """
    gated = {gate.key for gate in gates}
    means = [_metric(key, value) for key, value in sorted(summary.values().items()) if key not in gated]
    suites = {
        **(cases or {"metrics": means}),
        "thresholds": [_threshold(gate) for gate in gates if gate.key != KEY and not gate.key.startswith(CASE)],
        "failures": [_group(group, least) for group in summary.groups],
    }
    root = Element("testsuites", {"name": "pandaeval", **_counted([*chain.from_iterable(suites.values())])})
    for name, tests in suites.items():
        SubElement(root, "testsuite", {"name": f"pandaeval {name}", **_counted(tests)}).extend(tests)
    indent(root)
    target.write('<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n")


def _counted(tests: Sequence[Element]) -> dict[str, str]:
    failed, skipped = (str(sum(test.find(kind) is not None for test in tests)) for kind in ("failure", "skipped"))
    return {"tests": str(len(tests)), "failures": failed, "errors": "0", "skipped": skipped}


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
    details = for_xml(f"{group.description}\n{group.count} occurrence(s)\n{places}")
    if least and at_least(group.severity, least):
        failure = SubElement(case, "failure", message=for_xml(f"{group.count} occurrence(s)"), type=group.severity)
        failure.text = details
    else:
        SubElement(case, "system-out").text = details
    return case


def _metric(key: str, value: float) -> Element:
    case = _case("metrics", key)
    SubElement(case, "system-out").text = f"mean {value:.4f}; no threshold is configured"
    return case


def error_annotation(gate: GateOutcome, environ: Mapping[str, str]) -> str:
    """Return GitHub's workflow command for a failed gate, or ``""``.

    Format: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
    """
    if environ.get("GITHUB_ACTIONS") != "true":
        return ""
    text = " ".join(for_xml(gate.text).split())
    return f"::error title=pandaeval::{text.replace('%', '%25')}"
