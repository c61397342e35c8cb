"""How the models of a judge are asked: parameters of their calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pandaeval_collector.judge.parameters import ReplyFormat
from pandaeval_collector.section import Count

_RESERVED = frozenset(
    {"model", "messages", "api_key", "api_base", "base_url", "timeout", "max_tokens", "max_completion_tokens"}
    | {"reasoning_effort", "response_format", "stream", "n", "tools", "functions", "num_retries", "max_retries"}
    | {"fallbacks", "mock_response", "cache", "caching", "headers", "extra_headers", "default_headers"}
)


def _extra(given: Mapping[str, Any]) -> Mapping[str, Any]:
    taken = sorted(_RESERVED & given.keys())
    if taken:
        raise ValueError(f"may not hold {taken[0]}, which the judge sets itself or has a key of its own for")
    return given


Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
RecordTokens = Annotated[Count, Field(ge=400)]
Extra = Annotated[Mapping[str, Any], AfterValidator(_extra)]


class JudgeParameters(BaseModel):
    """What of ``judge`` is different for one model; what is not set is as for all."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_tokens: Count | None = None
    reasoning_effort: Effort | None = None
    response_format: ReplyFormat | None = None
    context_tokens: RecordTokens | None = None
    extra: Extra = Field(default={})
