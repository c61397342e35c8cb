"""Faults planted in recordings are readable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from pandaeval_collector.pipeline.line.stored_traces import Part, rebuilt
from pandaeval_lab.drill.fault import NotApplicableError, Subject, faults, plant
from pandaeval_lab.replay.files import Input, Request
from pandaeval_otel.wire.splitting import split_logs, split_traces

OWN = Path(__file__).parent / "captures"
SETS = sorted(path.name for path in OWN.iterdir() if path.is_dir())
MOST = 10
"""Maximum traces per set; alternate traces get alternate halves of the faults."""
INVENTED = {"invented_identifier", "invented_amount", "invented_date", "invented_url"}


def subjects(folder: Path) -> Iterator[Subject]:
    """Return every trace of a set."""
    for path in sorted(folder.glob("*.otlp.jsonl")):
        parts: dict[bytes, list[Part]] = {}
        for request in Input(str(path)).requests():
            assert isinstance(request, Request)
            for fragment in (split_logs if request.logs else split_traces)(request.data).fragments:
                parts.setdefault(fragment.trace_id, []).append((fragment.logs, fragment.chunk))
        for each in parts.values():
            trace = rebuilt(each).trace
            if trace is not None:
                yield Subject(trace, each, others=("Nothing of this kind was asked.",))


@pytest.mark.parametrize("name", SETS)
def test_planted_faults_change_the_spans_and_keep_trace_and_session_ids(name: str) -> None:
    planted: Counter[str] = Counter()
    for number, subject in enumerate(islice(subjects(OWN / name), MOST)):
        for fault_name, fault in islice(faults().items(), number % 2, None, 2):
            try:
                made = plant(fault, subject, Random(0))
            except NotApplicableError:
                continue
            planted[fault_name] += 1
            again = rebuilt(made.parts).trace
            assert again is not None
            assert made.parts != list(subject.parts)
            assert (again.trace_id, again.session_id) == (subject.trace.trace_id, subject.trace.session_id)
            if fault_name in INVENTED:
                new = made.what.rpartition(" → ")[2]
                assert not subject.knows(new)
                assert new in (again.output or "")
    assert planted["crash"] + planted["empty_answer"] > 0
