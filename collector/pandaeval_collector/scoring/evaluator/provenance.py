"""Who judged a result, on which record, at what cost: the key ``judge`` of its metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pandaeval_collector.base.score import Finding, Score
from pandaeval_collector.judge.desk import AnswerCost
from pandaeval_collector.judge.prompt import PROMPT_VERSION

_SPAN_ID = re.compile("[0-9a-f]{16}")
MOST_CITED = 128
"""Spans that a finding names are cited up to this number."""


def provenance(finding: Finding, spent: AnswerCost, model: str) -> Mapping[str, Any]:
    """For the metadata of a result: ``judge``, ``truncated`` where the record was cut, and ``injection_suspected``
    where words in it speak to a judge; nothing where no judge was asked. ``model``: who should have answered, where
    nobody did.

    ``judge.cited``: ids of the spans that the verdict names; ``judge.tokens.cached``: those of ``input`` that came from
    the provider's cache; ``judge.calls``: 0 where the verdict was remembered."""
    if not spent.pack:
        return {}
    about: dict[str, Any] = {
        "model": spent.model or model,
        "prompt_version": PROMPT_VERSION,
        "pack": spent.pack,
        "calls": spent.calls,
        "tokens": {"input": spent.prompt, "output": spent.completion, "cached": spent.cached},
        "cost_usd": spent.cost_usd,
    }
    cited = finding.span_ids if isinstance(finding, Score) else ()
    if cited:
        about["cited"] = [*dict.fromkeys(each for each in cited if _SPAN_ID.fullmatch(each))][:MOST_CITED]
    found: dict[str, Any] = {"judge": about}
    if spent.truncated:
        found["truncated"] = [*spent.truncated]
    if spent.suspected:
        found["injection_suspected"] = True
    return found
