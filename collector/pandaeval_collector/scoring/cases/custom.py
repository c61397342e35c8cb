"""Functions of the user's that cases name: graders, and sources of end states.

A grader gets a :class:`pandaeval_collector.scoring.cases.Trial` and returns ``True`` or ``False``, a number from 0 to
1, a pair of one of these with a reason, or a ``Score``, ``Assumed`` or ``Unscored``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from pandaeval_collector.base.runtime.modules import ModuleLoadError, load_module, source_digest
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored

Function = Callable[[Any], Any]


@cache
def function(spec: str) -> Function:
    """The function ``module:name`` or ``./file.py:name``. Raises :class:`ModuleLoadError`, with the cure."""
    module, _, name = spec.rpartition(":")
    if not module or not name.isidentifier():
        raise ModuleLoadError(f"{spec}: write module:function, or ./file.py:function")
    found = getattr(load_module(module), name, None)
    if not callable(found):
        raise ModuleLoadError(f"{spec}: {module} has no function {name}")
    made: Function = found
    return made


def source_of(spec: str) -> str:
    """12 hex digits that change with what a function could say; ``""`` for one without source, such as a built-in."""
    try:
        return source_digest(function(spec))
    except (ValueError, AttributeError):  # a partial, an instance, a function of C
        return ""


def finding(said: Any) -> Finding | None:
    """What a grader's answer means. Raises ``TypeError`` for what is none."""
    reason = ""
    if isinstance(said, tuple) and len(said) == 2:
        said, reason = said[0], str(said[1])
    if said is None or isinstance(said, Score | Assumed | Unscored):
        return said
    if isinstance(said, bool | int | float):
        return Score(float(said), reason or ("passed" if said else "not passed"))
    raise TypeError(f"a grader returns True, False or a number from 0 to 1, not a {type(said).__name__}")
