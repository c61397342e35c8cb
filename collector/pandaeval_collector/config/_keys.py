"""Every key there is, read off the tree: its path, its default, its meaning and its environment variable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

from pydantic.fields import FieldInfo

from pandaeval_collector.config._problem import dotted
from pandaeval_collector.config._tree import Config
from pandaeval_collector.section import Section, format_duration

PREFIX = "PANDAEVAL_"


@dataclass(frozen=True, slots=True)
class Key:
    """One key. ``section``: it holds keys of its own (``optional``: or null). ``is_map``: users name its entries.
    ``is_text``: any text is a value. ``default`` is as people write it (``10s``, ``32MiB``); ``required``: has none."""

    path: tuple[str, ...]
    meaning: str
    default: Any
    section: type[Section] | None
    optional: bool
    is_map: bool
    is_text: bool
    required: bool
    schema: Mapping[str, Any]

    @property
    def name(self) -> str:
        return dotted(self.path)

    @property
    def variable(self) -> str:
        return variable(self.path)


def variable(path: tuple[str | int, ...]) -> str:
    """The environment variable of a key: ``("close", "quiet")`` -> ``PANDAEVAL_CLOSE__QUIET``."""
    return PREFIX + "__".join(str(part).replace(".", "__").upper() for part in path)


@cache
def keys() -> dict[tuple[str, ...], Key]:
    """All keys by path, sections before what they hold, in the order of the tree."""
    return {key.path: key for key in _walk(Config, ())}


def below(path: tuple[str, ...]) -> list[Key]:
    """The keys directly in the section at ``path``; ``()`` is the whole configuration."""
    return [key for key in keys().values() if key.path[:-1] == path]


def _walk(section: type[Section], path: tuple[str, ...]) -> Iterator[Key]:
    schemas = section.model_json_schema(mode="serialization")["properties"]
    for name, field in section.model_fields.items():
        key = _key((*path, name), field, schemas[name])
        yield key
        if key.section:
            yield from _walk(key.section, key.path)


def _key(path: tuple[str, ...], field: FieldInfo, schema: Mapping[str, Any]) -> Key:
    variants = schema.get("anyOf", [schema])
    types = (field.annotation, *get_args(field.annotation))
    return Key(
        path=path,
        meaning=field.description or "",
        default=_default(field, schema),
        section=next((kind for kind in types if isinstance(kind, type) and issubclass(kind, Section)), None),
        optional={"type": "null"} in variants,
        is_map="additionalProperties" in schema,
        is_text=any(variant.get("type") == "string" and not {"enum", "const"} & variant.keys() for variant in variants),
        required=field.is_required(),
        schema=schema,
    )


def _default(field: FieldInfo, schema: Mapping[str, Any]) -> Any:
    """As people write it. Pydantic leaves the default of what may be null as it is."""
    kinds = {variant.get("x-kind") for variant in schema.get("anyOf", ())}
    if "duration" in kinds and isinstance(field.default, float):
        return format_duration(field.default)
    return schema.get("default")
