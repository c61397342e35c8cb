"""Turns the configuration into the settings of what looks into traces: evaluators, and judges with the guidelines that
people write for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_collector.config import Config, ConfigError, MetricNames, read_yaml
from pandaeval_collector.config.sections_judge import JudgeSection as JudgeSection
from pandaeval_collector.judge.guidelines import MOST_CHARS, Guideline
from pandaeval_collector.judge.selection import Selection
from pandaeval_collector.runs.front import trace_timeout
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.scoring.metric import JudgedMetric
from pandaeval_collector.scoring.registry import registry

State = Literal["candidate", "adopted", "rejected", "withdrawn"]


class WrittenGuideline(BaseModel):
    """A guideline as it stands in the file (YAML), which people write and ``pandaeval judge align`` goes on writing::

    - metric: trace.task_completion
      agent: helpdesk                    # left out: all agents
      text: A refund is done only when the tool's result says "refunded".
      state: candidate                   # candidate, adopted, rejected or withdrawn

    A judge heeds what is ``adopted``, whoever wrote that word. ``source`` and ``figures`` tell who proposed a guideline
    and how it did.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: Annotated[str, Field(pattern=r"^(trace|turn|session)\.[\w.]+$")]
    agent: str = ""
    text: Annotated[str, Field(min_length=1, max_length=MOST_CHARS)]
    state: State = "candidate"
    source: str = "people"
    why: str = ""
    figures: Mapping[str, float] = {}

    @property
    def guideline(self) -> Guideline:
        """The guideline in the form that a judge uses."""
        return Guideline(self.metric, self.text, self.agent)


def read_guidelines(path: Path) -> list[WrittenGuideline]:
    """Reads the guidelines file. Raises ``UserError`` for a file that cannot be used."""
    try:
        return TypeAdapter(list[WrittenGuideline]).validate_python(read_yaml(path) or [])
    except ConfigError as error:
        raise UserError("\n".join(f"judge.guidelines: {problem}" for problem in error.problems)) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        said = one_printable_line(f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}")
        raise UserError(f"judge.guidelines: {path}: {said}") from error


def adopted(entries: Sequence[WrittenGuideline]) -> tuple[Guideline, ...]:
    """Returns the guidelines that a judge uses: those with state ``adopted``."""
    return tuple(each.guideline for each in entries if each.state == "adopted")


if TYPE_CHECKING:
    from pandaeval_collector.judge.call import JudgeConfig


def evaluator(config: Config) -> Evaluator:
    """Makes the evaluator with its embedder. Raises ``EmbedderError`` if the embedder cannot be loaded."""
    from pandaeval_collector.analysis.embedding import load

    return Evaluator(load(config.embedding.model), scoring(config))


def scoring(config: Config) -> EvaluatorSettings:
    names = MetricNames((metric.level, metric.name) for metric in registry(config.metrics.modules).values())
    enabled = names.enabled(config)
    if not config.kafka.scores_sessions:  # others may hold traces of a session
        enabled = frozenset(key for key in enabled if not key.startswith("session."))
    return EvaluatorSettings(
        enabled=enabled,
        thresholds=names.thresholds(config),
        weights={str(name): weight for name, weight in config.session.weights.items()},
        extra_signals=config.session.extra_signals,
        coherence_signal=config.session.coherence_signal,
        end_tokens=config.response.end_tokens,
        modules=config.metrics.modules,
        shares_sessions=config.kafka.scores_sessions,
        listed_attributes=config.store.listed_attributes,
        trace_timeout=trace_timeout(config),
        judge=_judge(config, names),
    )


def _judge(config: Config, names: MetricNames) -> JudgeSettings | None:
    judge = config.judge
    if judge.model is None:
        return None
    selection = Selection(
        share=judge.sample,
        when=judge.when,
        only=judge.only,
    )
    return JudgeSettings(
        judge.model,
        models=_models(config, names),
        selection=selection,
        delay=judge.delay,
        secrets=config.redact.secrets,
        pii=config.redact.pii,
        custom=config.redact.custom,
        correctness=judge.correctness,
        detail=judge.detail,
        parameters=judge.parameters,
        guidelines=() if judge.guidelines is None else adopted(read_guidelines(Path(judge.guidelines))),
    )


def _models(config: Config, names: MetricNames) -> dict[str, str]:
    """Returns the model of each metric that has its own; the configuration's choice overrides the metric's."""
    judged = [metric for metric in registry(config.metrics.modules).values() if isinstance(metric, JudgedMetric)]
    own = {metric.key: metric.model for metric in judged if metric.model is not None}
    return {**own, **names.by_key(config.judge.models)}


def judge(config: Config) -> JudgeConfig | None:
    """Returns the judge's connection, limits and checks, or ``None`` without a judge."""
    settings = scoring(config).judge
    if settings is None:
        return None
    from pandaeval_collector.judge.call import JudgeConfig

    given = config.judge
    return JudgeConfig(
        tuple(sorted({settings.model, *settings.models.values()})),
        api_base=given.api_base,
        api_key_env=given.api_key_env,
        timeout=given.timeout,
        fallbacks=given.fallbacks,
        home=settings.model.partition("/")[0],
        parameters=given.parameters,
        context_tokens=given.context_tokens,
        concurrency=given.concurrency,
        rpm=given.rpm,
        tpm=given.tpm,
        daily_usd=given.daily_usd,
    )
