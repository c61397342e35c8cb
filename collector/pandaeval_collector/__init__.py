"""Score agent traces and sessions, and emit the scores as OpenTelemetry.

``__all__`` and :mod:`.stats` are the stable public API; other modules may move. Names are imported at first use.
"""

from typing import TYPE_CHECKING

from pandaeval_otel.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from pandaeval_collector.base.result import Result as Result
    from pandaeval_collector.base.score import (
        Assumed as Assumed,
        Finding as Finding,
        Score as Score,
        Unscored as Unscored,
        Why as Why,
    )
    from pandaeval_collector.base.section import (
        Amount as Amount,
        Count as Count,
        Duration as Duration,
        Endpoint as Endpoint,
        EnvName as EnvName,
        FilePath as FilePath,
        PositiveDuration as PositiveDuration,
        Section as Section,
        Share as Share,
        Size as Size,
        Text as Text,
        Url as Url,
    )
    from pandaeval_collector.exporters import (
        Exporter as Exporter,
        Repeating as Repeating,
        RetryLaterError as RetryLaterError,
        Row as Row,
        Sent as Sent,
        Surroundings as Surroundings,
    )
    from pandaeval_collector.judge.client import Judge as Judge
    from pandaeval_collector.judge.rubric import Reason as Reason, Rubric as Rubric, Verdict as Verdict
    from pandaeval_collector.scoring.custom import judged as judged, metric as metric
    from pandaeval_collector.scoring.metric import (
        EarlierOutput as EarlierOutput,
        Metric as Metric,
        SessionContext as SessionContext,
        SessionMetric as SessionMetric,
        SessionSignal as SessionSignal,
        SessionView as SessionView,
        Texts as Texts,
        TraceContext as TraceContext,
        TraceMetric as TraceMetric,
        TraceSummary as TraceSummary,
        TurnContext as TurnContext,
        TurnMetric as TurnMetric,
    )

_NAMES = {
    "base.result": "Result",
    "base.score": "Assumed Finding Score Unscored Why",
    "base.section": "Amount Count Duration Endpoint EnvName FilePath PositiveDuration Section Share Size Text Url",
    "exporters": "Exporter Repeating RetryLaterError Row Sent Surroundings",
    "judge.client": "Judge",
    "judge.rubric": "Reason Rubric Verdict",
    "scoring.custom": "judged metric",
    "scoring.metric": "EarlierOutput Metric SessionContext SessionMetric SessionSignal SessionView Texts "
    "TraceContext TraceMetric TraceSummary TurnContext TurnMetric",
}
"""Public names, by the module below this package that defines them."""
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
__all__ = __dir__()
