"""The kinds of value that keys hold: each says what is wrong in words a person can act on."""

from __future__ import annotations

import os
import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
)

from pandaeval_collector.base.section.units import (
    DURATION_PATTERN,
    SIZE_PATTERN,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
)

_ENDPOINT = re.compile(
    r"(?:https?://(?:[^/\s]*@)?)?(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+)(?::\d{1,5})?(?P<path>/\S*)?"
)


class Section(BaseModel):
    """A group of keys. Unknown keys are errors; values never change after loading. Each subclass is named after its
    key: the JSON schema that ``pandaeval config`` prints contains the class names."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def group(section: type[Section], description: str | None = None) -> Any:
    """A field that holds ``section`` with its defaults, described by its docstring unless ``description`` says more."""
    return Field(default=section(), description=description or section.__doc__)


def _endpoint(text: str) -> str:
    match = _ENDPOINT.fullmatch(text)
    if not match or (match["path"] and "://" not in text):
        raise ValueError("is not an endpoint; write HOST:PORT or http(s)://HOST:PORT")
    return text


def _url(text: str) -> str:
    if "://" not in text:
        raise ValueError("is not a URL; write http(s)://HOST:PORT/PATH")
    return _endpoint(text)


def _variable(name: str) -> str:
    # Keys often hold lower case letters or dashes; refusing those catches a secret pasted in place of its name.
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name, re.ASCII):
        raise ValueError("is not the name of an environment variable (A-Z, 0-9, _); write no secret here")
    return name


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("is not a number")
    return value


_DURATION = (
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
    WithJsonSchema({"type": ["string", "number"], "pattern": DURATION_PATTERN, "minimum": 0, "x-kind": "duration"}),
)
_SIZE = (
    BeforeValidator(parse_size),
    PlainSerializer(format_size, return_type=str, when_used="json"),
    WithJsonSchema({"type": ["string", "integer"], "pattern": SIZE_PATTERN, "minimum": 0, "x-kind": "size"}),
)
_TEXT = StringConstraints(strip_whitespace=True, min_length=1)

Duration = Annotated[float, *_DURATION]
PositiveDuration = Annotated[float, *_DURATION, Field(gt=0)]
Size = Annotated[int, *_SIZE, Field(gt=0)]
Count = Annotated[int, Field(ge=1), BeforeValidator(_number)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False), BeforeValidator(_number)]
Share = Annotated[float, Field(ge=0, le=1), BeforeValidator(_number)]
Text = Annotated[str, _TEXT]
FilePath = Annotated[str, _TEXT, AfterValidator(os.path.expanduser)]
Endpoint = Annotated[str, _TEXT, AfterValidator(_endpoint)]
Url = Annotated[str, _TEXT, AfterValidator(_url)]
EnvName = Annotated[str, _TEXT, AfterValidator(_variable)]

ReplyFormat = Literal["json", "schema", "text"]
