"""Types of fields in case files."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pandaeval_collector.base.section import join_lines

Name = Annotated[str, Field(min_length=1)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


def _checked_schema(schema: dict[str, Any]) -> dict[str, Any]:
    from pandaeval_lab.cases.schemas import BadSchemaError, validator_of

    try:
        validator_of(schema)
    except BadSchemaError as error:
        raise ValueError(f"is not a supported JSON schema: {error}") from error
    return schema


def _checked_pattern(pattern: str) -> str:
    from pandaeval_lab.cases.schemas import PatternError, compiled

    try:
        compiled(pattern)
    except PatternError as error:
        raise ValueError(f"is not a supported regular expression: {error}") from error
    return pattern


JsonSchema = Annotated[dict[str, Any], AfterValidator(_checked_schema)]
Pattern = Annotated[str, AfterValidator(_checked_pattern)]


class CasePart(BaseModel):
    """A part of a case file, without other keys. The docstring below a key describes it."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
        json_schema_extra=join_lines,
    )
