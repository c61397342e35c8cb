"""Evaluates agents offline: stored traces, cases, repeated trials, planted faults, people's labels.

The collector never imports the lab. ``__all__`` lists the public names, imported on first use.
"""

from typing import TYPE_CHECKING

from pandaeval_otel.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from pandaeval_lab.cases import Case as Case, Trial as Trial, TrialContext as TrialContext
    from pandaeval_lab.cli._case_api import (
        CaseOutcome as CaseOutcome,
        CaseRunResults as CaseRunResults,
        load_cases as load_cases,
        run_cases as run_cases,
    )
    from pandaeval_lab.drill.edits import (
        AnswerEdit as AnswerEdit,
        CustomEdit as CustomEdit,
        ToolResultEdit as ToolResultEdit,
    )
    from pandaeval_lab.drill.fault import Fault as Fault, NotApplicableError as NotApplicableError, Subject as Subject
    from pandaeval_lab.running.mocked import MockedToolError as MockedToolError, mocked as mocked

_NAMES = {
    "cases": "Case Trial TrialContext",
    "cli._case_api": "CaseOutcome CaseRunResults load_cases run_cases",
    "drill.edits": "AnswerEdit CustomEdit ToolResultEdit",
    "drill.fault": "Fault NotApplicableError Subject",
    "running.mocked": "MockedToolError mocked",
}
"""Public names, by the module below this package that defines them."""
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
__all__ = __dir__()
