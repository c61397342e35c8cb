"""Settings of evaluators and judges from the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandaeval_collector.config import Config, MetricNames
from pandaeval_collector.config.sections_judge import JudgeSection as JudgeSection
from pandaeval_collector.judge.selection import Selection
from pandaeval_collector.runs.front import trace_timeout
from pandaeval_collector.runs.rulings_file import RulingsInForce, rulings_path
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.scoring.metric import JudgedMetric
from pandaeval_collector.scoring.registry import registry

if TYPE_CHECKING:
    from pandaeval_collector.judge.call import JudgeConfig


def evaluator(config: Config) -> Evaluator:
    """Make the evaluator with its embedder. Raises ``EmbedderError``."""
    from pandaeval_collector.analysis.embedding import load

    return Evaluator(load(config.embedding.model), scoring(config))


def scoring(config: Config) -> EvaluatorSettings:
    names = MetricNames((metric.level, metric.name) for metric in registry(config.metrics.modules).values())
    enabled = names.enabled(config)
    if not config.kafka.scores_sessions:  # other collectors can have traces of a session
        enabled = frozenset(key for key in enabled if not key.startswith("session."))
    return EvaluatorSettings(
        enabled=enabled,
        thresholds=names.thresholds(config),
        weights={str(name): weight for name, weight in config.session.weights.items()},
        extra_signals=config.session.extra_signals,
        loop_signal=config.session.loop_signal,
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
    return JudgeSettings(
        judge.model,
        models=_models(config, names),
        selection=Selection(judge.sample, judge.only),
        delay=judge.delay,
        secrets=config.redact.secrets,
        pii=config.redact.pii,
        custom=config.redact.custom,
        correctness=judge.correctness,
        detail=judge.detail,
        unclear=judge.unclear,
        parameters=judge.parameters,
        rulings=RulingsInForce(rulings_path(config)),
    )


def _models(config: Config, names: MetricNames) -> dict[str, str]:
    judged = [metric for metric in registry(config.metrics.modules).values() if isinstance(metric, JudgedMetric)]
    own = {metric.key: metric.model for metric in judged if metric.model is not None}
    return {**own, **names.by_key(config.judge.models)}


def judge(config: Config) -> JudgeConfig | None:
    """Return the judge's connection, limits and checks, or ``None``."""
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
