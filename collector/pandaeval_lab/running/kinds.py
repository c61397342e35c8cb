"""Makes the agent that a case file or option names."""

from __future__ import annotations

import os
import re
from contextlib import AsyncExitStack
from typing import Any

from pydantic import ValidationError

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.printable import shown_address
from pandaeval_lab.cases.agent_entry import AgentEntry
from pandaeval_lab.cases.files import sentence
from pandaeval_lab.cases.model import Suite
from pandaeval_lab.running.agent import Agent
from pandaeval_lab.running.http_agent import http_agent
from pandaeval_lab.running.mock_replies import MockReplies
from pandaeval_lab.running.python_agent import python_agent

_VARIABLE = re.compile(r"\$\{(\w+)\}")


def entry_of(name: str, suite: Suite) -> AgentEntry:
    """Return the agent of this name in the case file, else the agent with this address or function.

    Raises ``UserError`` for a missing variable and an invalid value.
    """
    place = f"agent {shown_address(name)}"
    try:
        entry = suite.agents.get(name) or AgentEntry.model_validate(name)
        given = _with_variables(entry.model_dump(exclude_defaults=True), place)
        return AgentEntry.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{place}: {first['loc'][0]} {sentence(first)}") from error


def start(entry: AgentEntry, held: AsyncExitStack, replies: MockReplies) -> Agent:
    """Return the agent, which lives while ``held`` is open. Raises ``UserError``."""
    return python_agent(entry, replies) if entry.python else http_agent(entry, held, replies)


def _with_variables(value: Any, place: str) -> Any:
    if isinstance(value, dict):
        return {name: _with_variables(each, f"{place}, {name}") for name, each in value.items()}
    if isinstance(value, list):
        return [_with_variables(each, place) for each in value]
    if not isinstance(value, str):
        return value
    missing = [name for name in _VARIABLE.findall(value) if name not in os.environ]
    if missing:
        raise UserError(f"{place}: the environment variable {missing[0]} is not set; set it")
    return _VARIABLE.sub(lambda found: os.environ[found[1]].strip(), value)
