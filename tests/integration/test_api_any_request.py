"""The API follows its OpenAPI document for any request."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.collector import CollectorProcess
from support.judged_files import send

CAPTURES = Path(__file__).parents[1] / "golden" / "captures"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_api_operation_answers_as_documented(tmp_path: Path) -> None:
    import schemathesis  # the import takes seconds

    from support.any_request import ask_anything

    with CollectorProcess(tmp_path) as collector:
        collector.start()
        send(collector, sorted(CAPTURES.glob("*/tool_loop.otlp.jsonl"))[:5])
        collector.until(lambda: collector.at_rest() and bool(collector.results()), "at rest")
        schema = schemathesis.openapi.from_url(f"{collector.http}/api/v1/openapi.json")
        assert ask_anything(schema, examples=60) >= 8
        assert collector.running()
