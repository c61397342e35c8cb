"""Evaluates agents before and after a run: stored traces, cases, repeated trials, planted faults, people's labels.

The lab imports the collector. The collector never imports the lab: it knows only traces, turns and sessions.
``__all__`` lists the names for other packages. Each is imported on first use, so that ``mocked`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandaeval_lab.cases import Case as Case
    from pandaeval_lab.cases import Trial as Trial
    from pandaeval_lab.cases import TrialContext as TrialContext
    from pandaeval_lab.drill.edits import AnswerEdit as AnswerEdit
    from pandaeval_lab.drill.edits import ArgumentsEdit as ArgumentsEdit
    from pandaeval_lab.drill.edits import CustomEdit as CustomEdit
    from pandaeval_lab.drill.edits import ToolResultEdit as ToolResultEdit
    from pandaeval_lab.drill.fault import Fault as Fault
    from pandaeval_lab.drill.fault import NotApplicableError as NotApplicableError
    from pandaeval_lab.drill.fault import Subject as Subject
    from pandaeval_lab.running.mocked import MockedToolError as MockedToolError
    from pandaeval_lab.running.mocked import mocked as mocked

_NAMES = {
    ".cases": "Case Trial TrialContext",
    ".drill.edits": "AnswerEdit ArgumentsEdit CustomEdit ToolResultEdit",
    ".drill.fault": "Fault NotApplicableError Subject",
    ".running.mocked": "MockedToolError mocked",
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
