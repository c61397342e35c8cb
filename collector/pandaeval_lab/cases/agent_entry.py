"""The agents that a case file names."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from pandaeval_lab.cases.fields import CasePart, Name

_KINDS = ("python", "url", "openai")


class AgentEntry(CasePart):
    """An agent under test: one of python, url and openai. A text is a function or an address."""

    python: Name | None = None
    """module:function or ./file.py:function."""
    url: Name | None = None
    """Address that gets a POST per turn."""
    openai: Name | None = None
    """Base URL of an OpenAI-compatible endpoint; needs model."""
    model: Name | None = None
    """Name of the model at the endpoint."""
    headers: dict[Name, str] = {}
    """Headers of the request; ${NAME} is a variable."""
    body: dict[Name, Any] = {}
    """Body of the request, as JSON. {message}, {messages}, {session}, {case}, {trial}, {turn} and {inputs} are filled
    in. For openai: further fields, such as temperature."""
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
        named = [name for name in _KINDS if getattr(self, name) is not None]
        if len(named) != 1:
            given = " and ".join(named) or "none of them"
            raise ValueError(f"has {given}; write exactly one of python, url and openai")
        if self.openai and not self.model:
            raise ValueError("openai needs model, such as model: gpt-4o-mini")
        return self

    @property
    def is_remote(self) -> bool:
        """Whether another process sends the agent's spans."""
        return self.url is not None and self.spans
