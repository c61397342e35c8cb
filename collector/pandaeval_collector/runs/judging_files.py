"""The file of guidelines that judges go by (YAML), which people write and ``pandaeval judge align`` goes on writing::

- metric: trace.task_completion
  agent: helpdesk                    # left out: all agents
  text: A refund is done only when the tool's result says "refunded".
  state: candidate                   # candidate, adopted, rejected or withdrawn

A judge heeds what is ``adopted``, whoever wrote that word. ``source`` and ``figures`` tell who proposed a guideline and
how it did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_collector.config import ConfigError, read_yaml
from pandaeval_collector.judge.rubric import MOST_CHARS, Guideline

State = Literal["candidate", "adopted", "rejected", "withdrawn"]


class WrittenGuideline(BaseModel):
    """A guideline as it stands in the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: Annotated[str, Field(pattern=r"^(trace|turn|session)\.[\w.]+$")]
    agent: str = ""
    text: Annotated[str, Field(min_length=1, max_length=MOST_CHARS)]
    state: State = "candidate"
    source: str = "people"
    why: str = ""
    figures: Mapping[str, float] = {}

    @property
    def guideline(self) -> Guideline:
        """The guideline in the form that a judge uses."""
        return Guideline(self.metric, self.text, self.agent)


def read_guidelines(path: Path) -> list[WrittenGuideline]:
    """Reads the guidelines file. Raises ``UserError`` for a file that cannot be used."""
    try:
        return TypeAdapter(list[WrittenGuideline]).validate_python(read_yaml(path) or [])
    except ConfigError as error:
        raise UserError("\n".join(f"judge.guidelines: {problem}" for problem in error.problems)) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        said = one_printable_line(f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}")
        raise UserError(f"judge.guidelines: {path}: {said}") from error


def adopted(entries: Sequence[WrittenGuideline]) -> tuple[Guideline, ...]:
    """Returns the guidelines that a judge uses: those with state ``adopted``."""
    return tuple(each.guideline for each in entries if each.state == "adopted")
