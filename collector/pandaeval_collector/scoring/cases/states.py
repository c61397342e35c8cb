"""End state and exit code of a trial, as it states them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pandaeval_collector.scoring.cases.arguments import same
from pandaeval_collector.scoring.cases.trial import EXIT_CODE, Trial

_CODES = ("exit_code", "exitCode", "returncode", "return_code", "returnCode")


def differences(expected: Any, actual: Any, path: str = "") -> Iterator[dict[str, Any]]:
    """Each field in which the actual state is not as expected; fields that nobody expects may hold anything."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key, value in expected.items():
            place = f"{path}.{key}" if path else str(key)
            if key in actual:
                yield from differences(value, actual[key], place)
            else:
                yield {"field": place, "expected": value, "actual": None, "missing": True}
    elif not same(expected, actual):
        yield {"field": path, "expected": expected, "actual": actual}


def exit_code_of(trial: Trial) -> int | None:
    """Reads the exit code from the attribute ``pandaeval.exit_code``, else in the result of the last call that tells
    one."""
    stated = _whole(trial.stated(EXIT_CODE))
    if stated is not None:
        return stated
    for call in reversed(trial.all_calls):
        if isinstance(call.result, Mapping):
            for name in _CODES:
                if (code := _whole(call.result.get(name))) is not None:
                    return code
    return None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
