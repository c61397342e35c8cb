"""Evaluates agents offline: stored traces, cases, repeated trials, planted faults, people's labels.

The lab imports the collector. The collector never imports the lab: it knows only traces, turns and sessions.
``__all__`` lists the names for other packages. Each is imported on first use, so that ``mocked`` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandaeval_otel.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from pandaeval_lab.cases import Case as Case, Trial as Trial, TrialContext as TrialContext
    from pandaeval_lab.drill.edits import (
        AnswerEdit as AnswerEdit,
        ArgumentsEdit as ArgumentsEdit,
        CustomEdit as CustomEdit,
        ToolResultEdit as ToolResultEdit,
    )
    from pandaeval_lab.drill.fault import Fault as Fault, NotApplicableError as NotApplicableError, Subject as Subject
    from pandaeval_lab.running.mocked import MockedToolError as MockedToolError, mocked as mocked

_NAMES = {
    "cases": "Case Trial TrialContext",
    "drill.edits": "AnswerEdit ArgumentsEdit CustomEdit ToolResultEdit",
    "drill.fault": "Fault NotApplicableError Subject",
    "running.mocked": "MockedToolError mocked",
}
"""Public names, by the module below this package that defines them."""
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
__all__ = __dir__()
