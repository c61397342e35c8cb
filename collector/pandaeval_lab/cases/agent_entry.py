"""The agents that a case file names."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from pandaeval_collector.base.untrusted.printable import shown_address
from pandaeval_lab.cases.fields import CasePart, Name


class AgentEntry(CasePart):
    """An agent under test: python or url. Instead of a map, you can write a function or an address."""

    python: Name | None = None
    """module:function or ./file.py:function."""
    url: Name | None = None
    """Address that gets a POST per turn."""
    headers: dict[Name, str] = {}
    """Headers of the request. In every field, ${NAME} inserts an environment variable."""
    body: dict[Name, Any] = {}
    """Body of the request, as JSON. {message}, {messages}, {session}, {case}, {trial}, {turn} and {inputs} are filled
    in."""
    answer: Name | None = None
    """Place of the answer in the reply, such as data.text."""
    spans: bool = True
    """false: the agent sends no spans, so do not wait for them."""

    @model_validator(mode="before")
    @classmethod
    def _shorthand(cls, given: Any) -> Any:
        if not isinstance(given, str):
            return given
        return {"url" if given.startswith(("http://", "https://")) else "python": given}

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> AgentEntry:
        if (self.python is None) == (self.url is None):
            raise ValueError("write exactly one of python and url")
        return self

    @property
    def place(self) -> str:
        """The address, for messages."""
        return shown_address(self.url or "")

    @property
    def is_remote(self) -> bool:
        """Whether another process sends the agent's spans."""
        return self.url is not None and self.spans
