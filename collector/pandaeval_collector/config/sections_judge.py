"""Configuration of the judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from pandaeval_collector.base.removed import removed
from pandaeval_collector.base.section import (
    Amount,
    Count,
    Duration,
    EnvName,
    FilePath,
    PositiveDuration,
    Section,
    Share,
    Text,
    Url,
    without,
)

_RESERVED = frozenset(
    {"model", "messages", "api_key", "api_base", "base_url", "timeout", "max_completion_tokens", "stream", "n"}
    | {"tools", "functions", "num_retries", "max_retries", "fallbacks", "mock_response", "cache", "caching"}
    | {"headers", "extra_headers", "default_headers"}
)
_FORMATS = ("json_object", "json_schema", "text")


def _callable(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in parameters:
        if not name.isidentifier():
            raise ValueError(f"has {name}, which is not an argument; parameters apply to all models")
    most = parameters.get("max_tokens")
    if most is not None and (type(most) is not int or most < 1):
        raise ValueError("max_tokens must be a whole number from 1")
    response_format = parameters.get("response_format")
    if response_format not in (None, *({"type": name} for name in _FORMATS)):
        raise ValueError(f"response_format must be {{type: NAME}} with one of {', '.join(_FORMATS)}")
    return parameters


def _attributes(only: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    """Reject keys of earlier versions, which would match no trace."""
    for key in only:
        if replacement := removed("keys").get(f"judge.only.{key}"):
            raise ValueError(f"has {key}, which was removed. {replacement}")
    return only


def _ascending(band: tuple[float, float]) -> tuple[float, float]:
    if band[0] > band[1]:
        raise ValueError("write the lower bound first, such as [25, 75]")
    return band


Percent = Annotated[float, Field(ge=0.0, le=100.0)]
Band = Annotated[tuple[Percent, Percent], AfterValidator(_ascending)]
RecordTokens = Annotated[Count, Field(ge=400)]
Attributes = Annotated[Mapping[str, tuple[Text, ...]], AfterValidator(_attributes)]
Parameters = Annotated[Mapping[str, Any], without(_RESERVED, "judge"), AfterValidator(_callable)]


class JudgeSection(Section):
    """The language model that answers questions about runs."""

    model: Text | None = None
    """Name of the model in litellm format, such as openai/gpt-4o-mini. null: no judged metrics."""
    api_base: Url | None = None
    """URL of the model's server. null: the provider's server. file:PATH: replay recorded replies without a model."""
    api_key_env: EnvName | None = None
    """Name of the environment variable with the API key. null: the provider's usual variable."""
    timeout: PositiveDuration = 60.0
    """Longest time for one call."""
    fallbacks: tuple[Text, ...] = ()
    """Fallback models, tried in order when the primary model fails. api_base and api_key_env apply to models of the
    same provider as judge.model."""
    context_tokens: RecordTokens | None = None
    """Most tokens of a record. null: 32000 if the context window has 128000 tokens or more, otherwise at most 12000."""
    parameters: Parameters = Field(default={})
    """Arguments of every call in litellm format, such as {max_tokens: 8000, reasoning_effort: low}. The value null
    removes a default argument (temperature: null). response_format: {type: json_schema} enforces the question's
    schema."""
    concurrency: Count = 8
    """Most calls at the same time."""
    rpm: Count | None = None
    """Most calls per minute, including retries. null: no limit."""
    tpm: Count | None = None
    """Most tokens per minute. null: no limit."""
    daily_usd: Amount | None = None
    """Most US dollars per day (UTC). When the budget is used up, judged metrics are unscored. null: no limit."""
    delay: Duration = 30.0
    """Time between the end of a trace and its judging, to wait for late spans."""
    sample: Share = 1.0
    """Share of sessions that are judged, 0 to 1. All traces of a session are judged, or none."""
    only: Attributes = Field(default={})
    """Judge only traces with one of these values of each attribute of a span or resource, such as {service.name:
    [shop]}. gen_ai.agent.name is the name of the root agent. {}: all traces."""
    models: Mapping[str, Text] = {}
    """Models for single metrics, such as trace.plan_quality: openai/gpt-4o. The option --model of pandaeval evaluate
    overrides these models."""
    correctness: Literal["session", "trace"] = "session"
    """session: judge correctness of each closed session, and of traces without a session. trace: also judge each trace
    of a session."""
    detail: Literal["failing", "all", "none"] = "failing"
    """Questions after the verdict. failing: about the trace and turn of the first error, if the run is wrong, unclear
    or has a finding. all: about every trace and turn. none: no questions. For each judged trace, the judge also answers
    the questions of metrics in metrics.thresholds."""
    unclear: Band = (25, 75)
    """Two bounds, 0 to 100. If the judge's certainty that the run is correct is between the bounds, or equals a bound,
    the label is unclear. An unclear result neither passes nor fails, and no rate counts it."""
    rulings: FilePath | None = None
    """YAML file of rulings: sentences of the agent's owner that the judge follows. null: rulings.yaml in the data
    directory."""


class Redact(Section):
    """Content that is removed from prompts for the judge."""

    secrets: bool = True
    """Replace keys, tokens and passwords."""
    pii: bool = False
    """Replace e-mail addresses, phone, card and account numbers (needs the extra pii); not names."""
    custom: tuple[Text, ...] = ()
    """Your own functions, as package.module:function. Each function takes a text and returns the redacted text."""
