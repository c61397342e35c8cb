"""Carries session, user, test case and trial ids in OpenTelemetry's context, or in baggage of other services."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import opentelemetry.context as context_api
from opentelemetry import baggage, trace
from opentelemetry.attributes import BoundedAttributes
from opentelemetry.context import Context, create_key

from pandaeval_otel.base import semconv

SCOPE = create_key("pandaeval-scope")
BAGGAGE = next(iter(baggage.set_baggage("any", "value", Context())))
SPAN = next(iter(trace.set_span_in_context(trace.INVALID_SPAN, Context())))
"""Context keys of baggage and current span. Direct lookup is much faster than the API."""

_runtime = getattr(context_api, "_RUNTIME_CONTEXT", None)
_variable = getattr(_runtime, "_current_context", None)
current: Callable[[], Context] = _variable.get if isinstance(_variable, ContextVar) else context_api.get_current
"""Return ``get_current()`` with two calls less; it runs for every span."""

CARRIED = "_pandaeval_scope"
_FROM_BAGGAGE = (
    ("session", (semconv.PANDAEVAL_SESSION_ID, semconv.SESSION_ID)),
    ("user", (semconv.PANDAEVAL_USER_ID, semconv.USER_ID)),
    ("case", (semconv.PANDAEVAL_CASE_ID,)),
    ("trial", (semconv.PANDAEVAL_TRIAL,)),
)


@dataclass(frozen=True)
class ContextIds:
    """Ids of the spans that start in a context; ``""``: not set."""

    session: str = ""
    user: str = ""
    case: str = ""
    trial: str = ""

    attributes: dict[str, str] = field(init=False, compare=False, repr=False)
    """Attributes stamped on spans, also the baggage names. Computed eagerly to avoid a lock, which a forked child
    could inherit locked.
    """

    def __post_init__(self) -> None:
        named = (
            (semconv.PANDAEVAL_SESSION_ID, self.session),
            (semconv.PANDAEVAL_USER_ID, self.user),
            (semconv.PANDAEVAL_CASE_ID, self.case),
            (semconv.PANDAEVAL_TRIAL, self.trial),
        )
        object.__setattr__(self, "attributes", {name: value for name, value in named if value})


NOTHING = ContextIds()


def scope_in(context: Context) -> ContextIds:
    scope = context.get(SCOPE)
    own = scope if isinstance(scope, ContextIds) else NOTHING
    if BAGGAGE not in context:
        return own
    entries = baggage.get_all(context)
    found: dict[str, Any] = {}
    for field_name, names in _FROM_BAGGAGE:
        if not getattr(own, field_name):
            value = next((entries[name] for name in names if entries.get(name)), None)
            if value is not None:
                found[field_name] = str(value)
    if found:
        return replace(own, **found)
    return own


def stamp(span: Any, context: Context) -> ContextIds | None:
    """Write the context's ids on the first span here or after a change. Returns the ids, or ``None``."""
    scope: Any = context.get(SCOPE)
    if type(scope) is not ContextIds or BAGGAGE in context:
        scope = scope_in(context)
        if scope is NOTHING:
            return None
    # Remembered on the span itself: needs no cleanup, and a child finds it in whichever way it finds its parent.
    span._pandaeval_scope = scope
    parent = context.get(SPAN)
    if parent is not None:
        carried = getattr(parent, CARRIED, None)
        if carried is scope or carried == scope:
            return None
    # Until it has started nobody else can write on it, and these names and values need no checks: unless a limit of the
    # SDK is near, this skips its locks and checks, which are most of the cost.
    held: Any = getattr(span, "_attributes", None)
    if (
        type(held) is _PLAIN
        and held.max_value_len is None
        and (held.maxlen is None or len(held._dict) < held.maxlen - 3)
    ):
        held._dict.update(scope.attributes)
    else:
        for name, value in scope.attributes.items():
            span.set_attribute(name, value)
    return scope  # type: ignore[no-any-return]


def _as_known() -> Any:
    probe: Any = BoundedAttributes(maxlen=2, immutable=False)
    try:
        probe._dict.update({"known": "yes"})
        known = probe["known"] == "yes" and probe.maxlen == 2 and probe.max_value_len is None
    except (AttributeError, KeyError, TypeError):
        return None
    if known:
        return BoundedAttributes
    return None


_PLAIN = _as_known()
