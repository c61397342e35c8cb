"""Model calls do not repeat the conversation before."""

from typing import Any

from pandaeval_collector.drill.edits import CustomEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.subject import NotApplicableError, Subject
from pandaeval_otel.model import Trace


def since_the_last_user(held: Any) -> Any:
    """A list of messages without those before the last of the user's; instructions stay."""
    if not isinstance(held, list) or not all(isinstance(each, dict) and "role" in each for each in held):
        return held
    users = [at for at, each in enumerate(held) if each["role"] in ("user", "human")]
    if not users:
        return held
    kept = [each for at, each in enumerate(held) if at >= users[-1] or each["role"] in ("system", "developer")]
    return kept if len(kept) < len(held) else held


def edit(subject: Subject) -> CustomEdit:
    if not _repeats(subject.trace):
        raise NotApplicableError("no model call repeats the conversation before")
    return CustomEdit(
        lambda raw, before: raw.rewrite(since_the_last_user),
        lambda before, after: not _repeats(after) and after.output == before.output,
        "the conversation before is not repeated",
    )


def _repeats(trace: Trace) -> bool:
    """Whether a model call's input holds an answer before the last message of the user."""
    for span in trace.spans:
        roles = [message.role for message in span.input or ()]
        if "user" in roles and "assistant" in roles[: len(roles) - 1 - roles[::-1].index("user")]:
            return True
    return False


FAULT = Fault("telemetry", "Model calls do not repeat the conversation before.", lambda subject, rng: edit(subject))
