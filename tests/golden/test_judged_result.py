"""A judged result on every surface.

python tests/golden/test_judged_result.py # rewrites judged_result.json; note it in CHANGELOG.md
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
if __name__ == "__main__":
    sys.path[:0] = [str(FOLDER.parents[1]), str(FOLDER.parents[1] / "collector"), str(FOLDER.parent)]

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord  # noqa: E402
from opentelemetry.proto.trace.v1.trace_pb2 import Span  # noqa: E402

from pandaeval_collector.base.score import Score  # noqa: E402
from pandaeval_collector.exporters._evaluation_spans import spans  # noqa: E402
from pandaeval_collector.exporters.encode import encode_attributes, log_record  # noqa: E402
from pandaeval_collector.judge.call import ModelAnswer  # noqa: E402
from pandaeval_collector.judge.client import AnswerCost  # noqa: E402
from pandaeval_collector.judge.pack import pack  # noqa: E402
from pandaeval_collector.judge.prompt import PROMPT_VERSION  # noqa: E402
from pandaeval_collector.scoring.evaluator.judged import provenance  # noqa: E402
from support.judged import call, trace  # noqa: E402
from support.otlp_sink import attributes  # noqa: E402
from support.results import JUDGE, result  # noqa: E402

STORED = FOLDER / "judged_result.json"


def surfaces() -> dict[str, Any]:
    """Return a repaired verdict on a truncated record, on all surfaces."""
    shown, spent = pack(trace(calls=[call(1, result="x " * 5000)]), b"s" * 32, 2000), AnswerCost()
    spent.saw(shown)
    for cached in (0, 1024):
        spent.add(ModelAnswer("{}", 1500, 45, 0.0005, cached_tokens=cached))
    spent.model = "openai/gpt-4.1-mini"
    finding = Score(0.5, "One of two.", {"verdicts": []}, span_ids=("00f067aa0ba902b7", "", "00f067aa0ba902b7"))
    about = dict(provenance(finding, spent, "openai/gpt-4o-mini"))
    assert about["judge"].pop("pack") == shown.digest, "the digest depends on the prompt text"
    assert about["judge"].pop("prompt_version") == PROMPT_VERSION
    about["judge"] |= {"pack": "00ff00ff00ff00ff", "prompt_version": "1"}
    finding = Score(finding.value, finding.reason, {**finding.metadata, **about}, span_ids=finding.span_ids)
    made = result("argument_correctness", finding, evaluator=JUDGE, cost_usd=spent.cost_usd, tokens=spent.tokens)
    [span] = [Span.FromString(each) for each in spans([encode_attributes([made])[0]])]
    return {
        "json": json.loads(made.to_json()),
        "log": attributes(LogRecord.FromString(log_record(encode_attributes([made])[0])).attributes),
        "span": attributes(span.attributes),
        "links": [f"{link.trace_id.hex()}:{link.span_id.hex()}" for link in span.links],
    }


def test_a_judged_result_matches_the_stored_json_log_and_span() -> None:
    assert surfaces() == json.loads(STORED.read_text())


if __name__ == "__main__":
    STORED.write_text(json.dumps(surfaces(), indent=1) + "\n")
