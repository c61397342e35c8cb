"""The judge: its model, what it is asked about and shown, how its calls are made, and what checks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pandaeval_collector.base.section import (
    Amount,
    Count,
    Duration,
    EnvName,
    FilePath,
    PositiveDuration,
    ReplyFormat,
    Section,
    Share,
    Text,
    Url,
    group,
    without,
)

_RESERVED = frozenset(
    {"model", "messages", "api_key", "api_base", "base_url", "timeout", "max_tokens", "max_completion_tokens"}
    | {"reasoning_effort", "response_format", "stream", "n", "tools", "functions", "num_retries", "max_retries"}
    | {"fallbacks", "mock_response", "cache", "caching", "headers", "extra_headers", "default_headers"}
)


Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Votes = Annotated[Count, Field(le=9)]
RecordTokens = Annotated[Count, Field(ge=400)]
Extra = Annotated[Mapping[str, Any], without(_RESERVED, "judge")]


class JudgeParameters(BaseModel):
    """What of ``judge`` is different for one model; what is not set is as for all."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_tokens: Count | None = None
    reasoning_effort: Effort | None = None
    response_format: ReplyFormat | None = None
    context_tokens: RecordTokens | None = None
    extra: Extra = Field(default={})


class Only(Section):
    """Which traces are judged at all; what is empty excludes none."""

    agents: tuple[Text, ...] = ()
    """Names of agents (the outermost one of a trace)."""
    services: tuple[Text, ...] = ()
    """Values of service.name."""
    attributes: Mapping[str, Text] = {}
    """Attributes that some span of a trace or its resource must have, with their values."""


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
    max_tokens: Count | None = None
    """Most tokens of an answer, hidden reasoning included; null: what the question needs, and room for hidden reasoning
    where the model is known to reason. An answer that is cut is asked for once more, with more."""
    reasoning_effort: Effort | None = None
    """How hard a reasoning model is to think; null: as its provider likes."""
    response_format: ReplyFormat = "json"
    """What the provider holds an answer to, if it can. json: any JSON object, and the question's schema where an answer
    has to be repaired, so that all calls about a trace begin alike and are cached; schema: the question's schema
    always; text: nothing."""
    context_tokens: RecordTokens | None = None
    """Most tokens of a record that are shown; null: 12000, or less for a model whose window is known to be shorter."""
    extra: Extra = Field(default={})
    """Further parameters of every call, as litellm spells them, such as top_p: 0.5; null as a value takes one away that
    would be sent (temperature: null)."""
    parameters: Mapping[str, JudgeParameters] = {}
    """Other max_tokens, reasoning_effort, response_format, context_tokens and extra for single models, by name, such as
    openai/o3: {reasoning_effort: low}."""
    allowed_fails: Count = 3
    """Failures of a model in a row, within a minute, after which it is left alone for a while and then tried with one
    call."""
    cooldown: PositiveDuration = 30.0
    """How long it is left alone."""
    concurrency: Count = 8
    """Calls at a time."""
    rpm: Count | None = None
    """Calls per minute, retries included; null: no limit."""
    tpm: Count | None = None
    """Tokens per minute; null: no limit."""
    daily_usd: Amount | None = None
    """US dollars per day (UTC) after which judging rests; null: no limit."""
    daily_tokens: Count | None = None
    """The same in tokens; null: no limit."""
    over_budget: Literal["unscored", "wait"] = "unscored"
    """What becomes of judgements that the day has no money for: unscored, or wait for the next day."""
    delay: Duration = 30.0
    """Time after a trace closed before it is judged, for late spans."""
    sample: Share = 1.0
    """Share of sessions that are judged, 0 to 1; each whole or not at all."""
    samples: Mapping[str, Share] = {}
    """Other shares for single metrics, by name, such as trace.plan_quality: 0.1."""
    when: Literal["always", "suspicious"] = "always"
    """suspicious: judge every trace that failed or that a metric without a model found bad, and of the others the share
    that judge.sample says."""
    only: Only = group(Only)
    models: Mapping[str, Text] = {}
    """Other models for single metrics, by name, such as trace.plan_quality: openai/gpt-4o; --model of pandaeval
    evaluate outweighs them."""
    votes: Votes = 1
    """Verdicts on each question, 1 to 9, of which the median counts; each costs a call. Fewer than a majority that hold
    are no score. Best odd."""
    correctness: Literal["session", "trace"] = "session"
    """When correctness is asked: about a session when it closes (and about traces without one), or about each trace of
    a session too."""
    trace_calls: Literal["shared", "separate"] = "shared"
    """Whether the questions about a trace are put in one call, or each in a call of its own. What does not hold
    of a shared answer is asked for separately; with more than one of judge.votes each is."""
    turn_calls: Literal["shared", "separate"] = "shared"
    """The same for the seven questions about a turn."""
    guidelines: FilePath | None = None
    """YAML file of guidelines for single metrics and agents, which pandaeval judge align tries and adopts; null:
    none."""
    language: Text = "en"
    """Language in which reasons are given: en, or the name or code of another one."""


class Redact(Section):
    """What is taken out of texts before they are shown to a judge."""

    secrets: bool = True
    """Replace keys, tokens and passwords."""
    pii: bool = False
    """Replace e-mail addresses, phone, card and account numbers (needs the extra pii); not names."""
    custom: tuple[Text, ...] = ()
    """Functions of your own that take a text and return it without what is to be hidden, as package.module:function."""
