"""What is scored, by which model, and what fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from pandaeval_collector.config._types import Names
from pandaeval_collector.config.sections_gates import Baseline, Stream
from pandaeval_collector.config.sections_judge import Effort, Extra, JudgeParameters, RecordTokens
from pandaeval_collector.judge.parameters import ReplyFormat
from pandaeval_collector.section import (
    Amount,
    Count,
    Duration,
    Endpoint,
    EnvName,
    FilePath,
    PositiveDuration,
    Section,
    Share,
    Text,
    Url,
    group,
)

Votes = Annotated[Count, Field(le=9)]


class Session(Section):
    """When a session is over, and how its score is weighed."""

    idle: Duration = Field(default=900.0, description="Time since its last trace after which a session closes.")
    max_age: Duration = Field(default=86400.0, description="Time since its first trace after which a session closes.")
    interim: Duration | None = Field(
        default=60.0,
        description="Time without a new trace or verdict after which an open session is scored as far as it has come; "
        "such results say final: false, are log events, and enter no metric. null: only when it closes.",
    )
    judge_wait: Duration = Field(
        default=600.0,
        description="How long a session that is over waits for judges before it is scored without them; what they say "
        "later makes a revision.",
    )
    coherence_signal: Literal["sure", "calibrated", "raw"] = Field(
        default="sure",
        description="Which coherence counts for a session. sure: only answers that are off topic beyond doubt; "
        "calibrated: every value, on a scale that means the same for every embedder; raw: the cosine itself.",
    )
    extra_signals: tuple[Literal["error", "response", "grounding", "tool_loop"], ...] = Field(
        default=("error", "tool_loop"),
        description="Signals that count besides the four weighted ones: response (the run did not end well), grounding "
        "(it stated values that it had from nowhere) and tool_loop. error, the older name, is response and grounding.",
    )
    weights: Mapping[Literal["confidence", "loop_detection", "tool_correctness", "coherence"], Amount] = Field(
        default={}, description="Weights of signals, 0 or more; what is not named keeps 1.0 (tool_correctness: 0.8)."
    )


class Sessions(Section):
    """Sessions whose traces reach several collectors."""

    forward_to: Endpoint | None = Field(
        default=None,
        description="gRPC endpoint of the one collector that scores sessions; https:// for TLS; null: this one. It is "
        "shown the token of server.token_env, and must not demand a client certificate.",
    )
    certificate: FilePath | None = Field(
        default=None,
        description="File with the authority that signed the certificate of forward_to, PEM; null: the usual ones.",
    )


class Metrics(Section):
    """Which metrics run, and when they pass."""

    enabled: Names = Field(
        default="all",
        description="all, or a list of names: trace.coherence, or coherence for every level that has it. What a "
        "session metric reads of its traces is computed with it, as far as that asks no judge, and not sent.",
    )
    thresholds: Mapping[str, Amount] = Field(
        default={}, description="Least passing value by name, such as trace.coherence: 0.5; in the metric's own scale."
    )
    modules: tuple[Text, ...] = Field(
        default=(),
        description="Metrics of your own: Python files or YAML files (.yaml, .yml; paths count from the working "
        "directory), or dotted names of modules.",
    )


class Cases(Section):
    """Cases with a reference, against which trials are graded."""

    path: FilePath | None = Field(
        default=None,
        description="Case file (YAML or JSON): traces that name one of its cases (pandaeval.case.id), or whose input "
        "is its task, are graded; those of a session together, when it is over; null: none.",
    )


class Embedding(Section):
    """How texts become vectors."""

    model: Text = Field(
        default="embedded",
        description="embedded (English) or multilingual, which ship with the package; model2vec:NAME, onnx-minilm or "
        "litellm:NAME.",
    )


class Only(Section):
    """Which traces are judged at all; what is empty excludes none."""

    agents: tuple[Text, ...] = Field(default=(), description="Names of agents (the outermost one of a trace).")
    services: tuple[Text, ...] = Field(default=(), description="Values of service.name.")
    attributes: Mapping[str, Text] = Field(
        default={}, description="Attributes that some span of a trace or its resource must have, with their values."
    )


class Second(Section):
    """Another judge that is shown some of the questions, to see how far the two agree; no score is its."""

    model: Text | None = Field(
        default=None,
        description="Name of its model, best of another maker; null: none. judge.api_base and judge.api_key_env are "
        "its too if it is of the same provider as judge.model.",
    )
    share: Share = Field(default=0.1, description="Share of results, 0 to 1, that it judges as well.")


class Shadow(Section):
    """A judge that judges some of the live traffic beside the live one, into a run and series of its own: to try a
    model before it takes over. No score, list or alert is its."""

    model: Text | None = Field(
        default=None,
        description="Name of its model; null: none. judge.api_base and judge.api_key_env are its too if it is of the "
        "same provider as judge.model.",
    )
    share: Share = Field(
        default=0.1, description="Share of the sessions, and of traces without one, 0 to 1, of those that are judged."
    )


class Judge(Section):
    """The language model that answers what code cannot."""

    model: Text | None = Field(
        default=None, description="Name of the model, as litellm spells it; null: no judged metrics."
    )
    api_base: Url | None = Field(default=None, description="URL of the model's server; null: the provider's own.")
    api_key_env: EnvName | None = Field(
        default=None, description="Name of the environment variable with the API key; null: the provider's usual one."
    )
    timeout: PositiveDuration = Field(default=60.0, description="Longest time for one call.")
    fallbacks: tuple[Text, ...] = Field(
        default=(),
        description="Models that are asked, in this order, when the one that should be asked fails. api_base and "
        "api_key_env are for models of the same provider as judge.model.",
    )
    max_tokens: Count | None = Field(
        default=None,
        description="Most tokens of an answer, hidden reasoning included; null: what the question needs, and room for "
        "hidden reasoning where the model is known to reason. An answer that is cut is asked for once more, with more.",
    )
    reasoning_effort: Effort | None = Field(
        default=None, description="How hard a reasoning model is to think; null: as its provider likes."
    )
    response_format: ReplyFormat = Field(
        default="json",
        description="What the provider holds an answer to, if it can. json: any JSON object, and the question's schema "
        "where an answer has to be repaired, so that all calls about a trace begin alike and are cached; schema: the "
        "question's schema always; text: nothing.",
    )
    context_tokens: RecordTokens | None = Field(
        default=None,
        description="Most tokens of a record that are shown; null: 12000, or less for a model whose window is known to "
        "be shorter.",
    )
    extra: Extra = Field(
        default={},
        description="Further parameters of every call, as litellm spells them, such as top_p: 0.5; null as a value "
        "takes one away that would be sent (temperature: null).",
    )
    parameters: Mapping[str, JudgeParameters] = Field(
        default={},
        description="Other max_tokens, reasoning_effort, response_format, context_tokens and extra for single models, "
        "by name, such as openai/o3: {reasoning_effort: low}.",
    )
    allowed_fails: Count = Field(
        default=3,
        description="Failures of a model in a row, within a minute, after which it is left alone for a while and then "
        "tried with one call.",
    )
    cooldown: PositiveDuration = Field(default=30.0, description="How long it is left alone.")
    concurrency: Count = Field(default=8, description="Calls at a time.")
    rpm: Count | None = Field(default=None, description="Calls per minute, retries included; null: no limit.")
    tpm: Count | None = Field(default=None, description="Tokens per minute; null: no limit.")
    daily_usd: Amount | None = Field(
        default=None, description="US dollars per day (UTC) after which judging rests; null: no limit."
    )
    daily_tokens: Count | None = Field(default=None, description="The same in tokens; null: no limit.")
    over_budget: Literal["unscored", "wait"] = Field(
        default="unscored",
        description="What becomes of judgements that the day has no money for: unscored, or wait for the next day.",
    )
    delay: Duration = Field(default=30.0, description="Time after a trace closed before it is judged, for late spans.")
    sample: Share = Field(
        default=1.0, description="Share of sessions that are judged, 0 to 1; each whole or not at all."
    )
    samples: Mapping[str, Share] = Field(
        default={}, description="Other shares for single metrics, by name, such as trace.plan_quality: 0.1."
    )
    when: Literal["always", "suspicious"] = Field(
        default="always",
        description="suspicious: judge every trace that failed or that a metric without a model found bad, and of the "
        "others the share that judge.sample says.",
    )
    only: Only = group(Only)
    models: Mapping[str, Text] = Field(
        default={},
        description="Other models for single metrics, by name, such as trace.plan_quality: openai/gpt-4o; --model of "
        "pandaeval evaluate outweighs them.",
    )
    votes: Votes = Field(
        default=1,
        description="Verdicts on each question, 1 to 9, of which the median counts; each costs a call. Fewer than a "
        "majority that hold are no score. Best odd.",
    )
    turn_calls: Literal["shared", "separate"] = Field(
        default="shared",
        description="Whether the seven questions about a turn are put in one call, or each in a call of its own. What "
        "does not hold of a shared answer is asked for separately; with more than one of judge.votes each is.",
    )
    second: Second = group(Second)
    shadow: Shadow = group(Shadow)
    language: Text = Field(
        default="en", description="Language in which reasons are given: en, or the name or code of another one."
    )
    retest: Share = Field(
        default=0.0,
        description="Share of results, 0 to 1, whose question is put twice: how far does the judge agree with itself?",
    )
    canaries: FilePath | None = Field(
        default=None,
        description="YAML file of runs whose verdicts are known, to notice when the judge changes; null: none.",
    )
    canary_interval: PositiveDuration = Field(default=86400.0, description="Time between two rounds of the canaries.")
    calibration: FilePath | None = Field(
        default=None,
        description="File that pandaeval calibrate --write made: how far this judge agrees with people; null: none.",
    )
    calibrated_thresholds: bool = Field(
        default=False,
        description="Whether the thresholds that the file suggests are used, for metrics without one in "
        "metrics.thresholds, while judge and version of the metric are those of the file.",
    )


class Labels(Section):
    """What people say of runs, and what is made of it."""

    window: PositiveDuration = Field(
        default=30 * 86400.0,
        description="How long judged scores are kept to be held against people's labels: pass rates are about the runs "
        "of this time.",
    )
    interval: PositiveDuration = Field(
        default=60.0, description="Time between two calculations of the corrected pass rates."
    )


class Redact(Section):
    """What is taken out of texts before they are shown to a judge."""

    secrets: bool = Field(default=True, description="Replace keys, tokens and passwords.")
    pii: bool = Field(
        default=False,
        description="Replace e-mail addresses, phone, card and account numbers (needs pandaeval-otel[pii]); not names.",
    )
    custom: tuple[Text, ...] = Field(
        default=(),
        description="Functions of your own that take a text and return it without what is to be hidden, as "
        "package.module:function.",
    )


class Gates(Section):
    """When pandaeval evaluate exits with 1."""

    baseline: Baseline = group(Baseline)
    stream: Stream = group(Stream)

    fail_on_error_severity: Literal["low", "medium", "high", "critical"] | None = Field(
        default="critical", description="Least severity of a failure that fails the run; null: none does."
    )
    max_unscored: Share = Field(
        default=0.2,
        description="Largest share of results, 0 to 1, that may be missing before a threshold fails; what was not "
        "captured or not sampled is not missing.",
    )
