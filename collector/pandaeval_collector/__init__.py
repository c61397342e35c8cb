"""pandaeval_collector says how good it was: it scores agent traces and sessions, and emits the scores as OpenTelemetry.

``__all__`` is what metrics and exporters of other packages import, beside the formulas in :mod:`.stats`; these
names stay, the rooms behind them may move. Each is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandaeval_collector.base.result import Result as Result
    from pandaeval_collector.base.score import Assumed as Assumed
    from pandaeval_collector.base.score import Finding as Finding
    from pandaeval_collector.base.score import Score as Score
    from pandaeval_collector.base.score import Unscored as Unscored
    from pandaeval_collector.base.score import Why as Why
    from pandaeval_collector.base.section import Amount as Amount
    from pandaeval_collector.base.section import Count as Count
    from pandaeval_collector.base.section import Duration as Duration
    from pandaeval_collector.base.section import Endpoint as Endpoint
    from pandaeval_collector.base.section import EnvName as EnvName
    from pandaeval_collector.base.section import FilePath as FilePath
    from pandaeval_collector.base.section import PositiveDuration as PositiveDuration
    from pandaeval_collector.base.section import Section as Section
    from pandaeval_collector.base.section import Share as Share
    from pandaeval_collector.base.section import Size as Size
    from pandaeval_collector.base.section import Text as Text
    from pandaeval_collector.base.section import Url as Url
    from pandaeval_collector.exporters import Exporter as Exporter
    from pandaeval_collector.exporters import Repeating as Repeating
    from pandaeval_collector.exporters import RetryLaterError as RetryLaterError
    from pandaeval_collector.exporters import Row as Row
    from pandaeval_collector.exporters import Sent as Sent
    from pandaeval_collector.exporters import Surroundings as Surroundings
    from pandaeval_collector.judge.client import Judge as Judge
    from pandaeval_collector.judge.rubric import Reason as Reason
    from pandaeval_collector.judge.rubric import Rubric as Rubric
    from pandaeval_collector.judge.rubric import Verdict as Verdict
    from pandaeval_collector.scoring.custom import judged as judged
    from pandaeval_collector.scoring.custom import metric as metric
    from pandaeval_collector.scoring.metric import EarlierOutput as EarlierOutput
    from pandaeval_collector.scoring.metric import Metric as Metric
    from pandaeval_collector.scoring.metric import SessionContext as SessionContext
    from pandaeval_collector.scoring.metric import SessionMetric as SessionMetric
    from pandaeval_collector.scoring.metric import SessionSignal as SessionSignal
    from pandaeval_collector.scoring.metric import SessionView as SessionView
    from pandaeval_collector.scoring.metric import Texts as Texts
    from pandaeval_collector.scoring.metric import TraceContext as TraceContext
    from pandaeval_collector.scoring.metric import TraceMetric as TraceMetric
    from pandaeval_collector.scoring.metric import TraceSummary as TraceSummary
    from pandaeval_collector.scoring.metric import TurnContext as TurnContext
    from pandaeval_collector.scoring.metric import TurnMetric as TurnMetric

_NAMES = {
    ".base.result": "Result",
    ".base.score": "Assumed Finding Score Unscored Why",
    ".base.section": "Amount Count Duration Endpoint EnvName FilePath PositiveDuration Section Share Size Text Url",
    ".exporters": "Exporter Repeating RetryLaterError Row Sent Surroundings",
    ".judge.client": "Judge",
    ".judge.rubric": "Reason Rubric Verdict",
    ".scoring.custom": "judged metric",
    ".scoring.metric": "EarlierOutput Metric SessionContext SessionMetric SessionSignal SessionView Texts "
    "TraceContext TraceMetric TraceSummary TurnContext TurnMetric",
}
"""Public names by the module below this package that they are imported from."""
_WHERE = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
