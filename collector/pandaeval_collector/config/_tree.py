"""The whole configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

from pandaeval_collector.base.section import Section, format_duration, group
from pandaeval_collector.config.sections_in import Close, Late, LineSection, Server, StoreSection
from pandaeval_collector.config.sections_judge import JudgeSection, Redact
from pandaeval_collector.config.sections_out import Exporters, Spans, Ui
from pandaeval_collector.config.sections_scoring import (
    Embedding,
    Gates,
    MetricsSection,
    ResponseSection,
    SessionSection,
)
from pandaeval_collector.kafka.settings import Kafka


class Config(Section):
    """Everything that can be set. Durations are seconds (float), sizes bytes (int); ``Config()`` is the defaults."""

    server: Server = group(Server)
    kafka: Kafka = group(Kafka)
    close: Close = group(Close)
    late: Late = group(Late)
    line: LineSection = group(LineSection)
    session: SessionSection = group(SessionSection)
    metrics: MetricsSection = group(MetricsSection)
    response: ResponseSection = group(ResponseSection)
    embedding: Embedding = group(Embedding)
    judge: JudgeSection = group(JudgeSection)
    redact: Redact = group(Redact)
    store: StoreSection = group(StoreSection)
    ui: Ui = group(Ui)
    spans: Spans = group(Spans)
    exporters: Exporters = group(Exporters)
    gates: Gates = group(Gates)


# Every key there is, read off the tree: its path, its default, its meaning and its environment variable.
PREFIX = "PANDAEVAL_"


@dataclass(frozen=True, slots=True)
class Key:
    """A key. ``section``: the section that it holds, if any. ``required``: no default."""

    path: tuple[str, ...]
    meaning: str
    section: type[Section] | None
    required: bool
    within: type[Section]

    @property
    def schema(self) -> Mapping[str, Any]:
        return _schemas(self.within)[self.path[-1]]

    @property
    def default(self) -> Any:
        """The default as written (``10s``, ``32MiB``), also of a nullable duration."""
        default = self.within.model_fields[self.path[-1]].default
        if isinstance(default, float) and "duration" in {each.get("x-kind") for each in self._variants}:
            return format_duration(default)
        return self.schema.get("default")

    @property
    def optional(self) -> bool:
        return {"type": "null"} in self._variants

    @property
    def is_map(self) -> bool:
        return "additionalProperties" in self.schema

    @property
    def is_text(self) -> bool:
        return any(each.get("type") == "string" and not {"enum", "const"} & each.keys() for each in self._variants)

    @property
    def _variants(self) -> list[Mapping[str, Any]]:
        return list(self.schema.get("anyOf", [self.schema]))


def variable(path: tuple[str | int, ...]) -> str:
    """Return a key's environment variable: ``("close", "quiet")`` -> ``PANDAEVAL_CLOSE__QUIET``."""
    return PREFIX + "__".join(str(part).replace(".", "__").upper() for part in path)


@cache
def keys() -> dict[tuple[str, ...], Key]:
    """Return all keys by path in tree order, each section before its keys."""
    return {key.path: key for key in _walk(Config, ())}


def below(path: tuple[str, ...]) -> list[Key]:
    """Return the keys directly in the section at ``path``; ``()`` is the root."""
    return [key for key in keys().values() if key.path[:-1] == path]


def _walk(section: type[Section], path: tuple[str, ...]) -> Iterator[Key]:
    for name, field in section.model_fields.items():
        types = (field.annotation, *get_args(field.annotation))
        below_it = next((kind for kind in types if isinstance(kind, type) and issubclass(kind, Section)), None)
        meaning = " ".join((field.description or "").split())  # docstrings have line breaks
        yield Key((*path, name), meaning, below_it, field.is_required(), section)
        if below_it:
            yield from _walk(below_it, (*path, name))


@cache
def _schemas(section: type[Section]) -> Mapping[str, Mapping[str, Any]]:
    schemas: Mapping[str, Mapping[str, Any]] = section.model_json_schema(mode="serialization")["properties"]
    return schemas
