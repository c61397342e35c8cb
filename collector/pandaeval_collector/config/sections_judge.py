"""The judge: its model, what it is asked about and shown, how its calls are made, and what checks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

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
    """Checks the parameters that the collector itself reads."""
    most = parameters.get("max_tokens")
    if most is not None and (type(most) is not int or most < 1):
        raise ValueError("max_tokens must be a whole number from 1")
    response_format = parameters.get("response_format")
    if response_format not in (None, *({"type": name} for name in _FORMATS)):
        raise ValueError(f"response_format must be {{type: NAME}} with one of {', '.join(_FORMATS)}")
    return parameters


def _attributes(only: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    """Rejects the keys of earlier versions, which would match no trace."""
    for key, attribute in (("agents", "gen_ai.agent.name"), ("services", "service.name")):
        if key in only:
            raise ValueError(f"{key} is not an attribute; write {attribute}")
    return only


def _ascending(band: tuple[float, float]) -> tuple[float, float]:
    """Rejects a band whose lower bound is above its upper bound."""
    if band[0] > band[1]:
        raise ValueError("write the lower bound first, such as [25, 75]")
    return band


Percent = Annotated[float, Field(ge=0.0, le=100.0)]
Band = Annotated[tuple[Percent, Percent], AfterValidator(_ascending)]
RecordTokens = Annotated[Count, Field(ge=400)]
Attributes = Annotated[Mapping[str, tuple[Text, ...]], AfterValidator(_attributes)]
Parameters = Annotated[Mapping[str, Any], without(_RESERVED, "judge"), AfterValidator(_callable)]


class JudgeSection(Section):
    """The language model that answers what code cannot."""

    model: Text | None = None
    """Name of the model, as litellm spells it; null: no judged metrics."""
    api_base: Url | None = None
    """URL of the model's server; null: the provider's own; file:PATH: recorded replies, and no model is asked."""
    api_key_env: EnvName | None = None
    """Name of the environment variable with the API key; null: the provider's usual one."""
    timeout: PositiveDuration = 60.0
    """Longest time for one call."""
    fallbacks: tuple[Text, ...] = ()
    """Models that are asked, in this order, when the one that should be asked fails. api_base and api_key_env are for
    models of the same provider as judge.model."""
    context_tokens: RecordTokens | None = None
    """Limit of a record in tokens; null: 32000 if the model's window has 128000 or more, else 12000, or less in a small
    window."""
    parameters: Parameters = Field(default={})
    """Arguments of every call, as litellm spells them: {max_tokens: 8000, reasoning_effort: low, top_p: 0.5}. null
    removes a default argument (temperature: null). response_format: {type: json_schema} enforces the question's schema
    in every call, {type: text} nothing."""
    concurrency: Count = 8
    """Calls at a time."""
    rpm: Count | None = None
    """Calls per minute, retries included; null: no limit."""
    tpm: Count | None = None
    """Tokens per minute; null: no limit."""
    daily_usd: Amount | None = None
    """US dollars per day (UTC). When they are spent, judged metrics are unscored; null: no limit."""
    delay: Duration = 30.0
    """Time after a trace closed before it is judged, for late spans."""
    sample: Share = 1.0
    """Share of sessions that are judged, 0 to 1; each whole or not at all."""
    when: Literal["always", "suspicious"] = "always"
    """suspicious: judge every trace that failed or that a metric without a model found bad, and of the others the share
    that judge.sample says."""
    only: Attributes = Field(default={})
    """Judge only traces with one of these values of each attribute, of a span or its resource, such as {service.name:
    [shop]}. gen_ai.agent.name is the name of the outermost agent. {}: all traces."""
    models: Mapping[str, Text] = {}
    """Other models for single metrics, by name, such as trace.plan_quality: openai/gpt-4o; --model of pandaeval
    evaluate outweighs them."""
    correctness: Literal["session", "trace"] = "session"
    """When correctness is asked: about a session when it closes (and about traces without one), or about each trace of
    a session too."""
    detail: Literal["failing", "all", "none"] = "failing"
    """failing: after the verdict, ask about traces and turns only if the run is wrong, unclear or has a finding; all:
    ask about each; none: ask for the verdict only. A metric with a threshold is asked about each trace."""
    unclear: Band = (25, 75)
    """Lower and upper bound, 0 to 100, both included: if the judge's certainty of correctness is in between, the label
    is unclear. Such a result neither passes nor fails, and no rate counts it."""
    rulings: FilePath | None = None
    """YAML file of rulings: sentences of the agent's owner that the judge follows. null: rulings.yaml in the data
    directory."""


class Redact(Section):
    """What is taken out of texts before they are shown to a judge."""

    secrets: bool = True
    """Replace keys, tokens and passwords."""
    pii: bool = False
    """Replace e-mail addresses, phone, card and account numbers (needs the extra pii); not names."""
    custom: tuple[Text, ...] = ()
    """Functions of your own that take a text and return it without what is to be hidden, as package.module:function."""
