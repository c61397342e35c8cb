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
    """Name of the model in litellm format, such as openai/gpt-4o-mini. If null, judged metrics are off."""
    api_base: Url | None = None
    """URL of the model's server. If null, the provider's server is used. file:PATH replays recorded replies without a
    model."""
    api_key_env: EnvName | None = None
    """Name of the environment variable with the API key. If null, the provider's usual variable is used."""
    timeout: PositiveDuration = 60.0
    """Maximum time for an attempt of a call. A call has up to three attempts for each model."""
    fallbacks: tuple[Text, ...] = ()
    """Fallback models, tried in order when the primary model fails. api_base and api_key_env apply to models of the
    same provider as judge.model."""
    context_tokens: RecordTokens | None = None
    """Maximum number of tokens in a record, the text of a run for the judge. If null, the maximum is 32000 for context
    windows of 128000 tokens or more, otherwise at most 12000."""
    parameters: Parameters = Field(default={})
    """Arguments of every call in litellm format, such as {max_tokens: 8000, reasoning_effort: low}. null removes a
    default argument (temperature: null). response_format: {type: json_schema} makes the provider enforce the question's
    schema."""
    concurrency: Count = 8
    """Maximum number of concurrent calls."""
    rpm: Count | None = None
    """Maximum number of calls per minute, including retries. If null, there is no limit."""
    tpm: Count | None = None
    """Maximum number of tokens per minute. If null, there is no limit."""
    daily_usd: Amount | None = None
    """Maximum cost per day (UTC), in US dollars. The collector does not send a call that could exceed it, and the
    judged metric is unscored. For a model without a known price, only costs that its provider reports count. If null,
    there is no limit."""
    delay: Duration = 30.0
    """Time from the completion of a trace to the judge's calls about this trace, to wait for late spans."""
    sample: Share = 1.0
    """Share of sessions that are judged, 0 to 1. The judge gets all traces of a session, or none. A trace without a
    session counts as a session."""
    only: Attributes = Field(default={})
    """Judge only traces whose spans or resources have certain attributes, such as {service.name: [shop]}. A trace must
    match every listed attribute with one of its listed values. gen_ai.agent.name also matches the name of the root
    agent. {} matches all traces."""
    models: Mapping[str, Text] = {}
    """Models for single metrics, such as trace.plan_quality: openai/gpt-4o. The option --model of pandaeval evaluate
    overrides these models."""
    correctness: Literal["session", "trace"] = "session"
    """With session, the metric correctness covers closed sessions, and traces without a session. With trace, it also
    covers each trace of a session."""
    detail: Literal["failing", "all", "none"] = "failing"
    """Further questions that the judge answers after the verdict. With failing, they cover only runs that are wrong or
    unclear or have a finding, and only the trace and turn of the first error. With all, they cover every trace and
    turn. With none, there are no further questions. For each judged trace, the judge also answers the questions of the
    metrics in metrics.thresholds."""
    unclear: Band = (25, 75)
    """Two bounds, 0 to 100. The judge states how certain it is that the run is correct. If this certainty lies between
    the bounds, or equals a bound, the label is unclear. An unclear result neither passes nor fails, and rates exclude
    it."""
    rulings: FilePath | None = None
    """YAML file with rulings, sentences of the agent's owner that the judge follows. If null, rulings.yaml in the data
    directory is used."""


class Redact(Section):
    """Content that the collector removes from prompts for the judge."""

    secrets: bool = True
    """Replace keys, tokens and passwords."""
    pii: bool = False
    """Replace e-mail addresses, and phone, card, IBAN and US social security numbers. Names, postal addresses and phone
    numbers without separators remain. Needs the extra pii."""
    custom: tuple[Text, ...] = ()
    """Your own functions, as package.module:function. Each function takes a text, and returns the redacted text."""
