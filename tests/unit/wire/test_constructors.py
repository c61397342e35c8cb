"""Constructors that are written out for the compiler say what their dataclass says."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

import pandaeval_otel
from pandaeval_otel.compiled import is_compiled
from pandaeval_otel.dialects._reading import Reading
from pandaeval_otel.model.message import Message, ToolRequest
from pandaeval_otel.model.span import Kind, Span, Usage
from pandaeval_otel.normal.calls import Call
from pandaeval_otel.raw import RawSpan
from pandaeval_otel.wire import Item

_KNOWN = {Call, Item, Message, RawSpan, Reading, Span, ToolRequest, Usage}


def _written_out() -> Iterator[type[Any]]:
    """Dataclasses of the application side whose constructor is not made by ``dataclasses``."""
    for name in ("raw", "wire"):
        yield from _of(importlib.import_module(f"pandaeval_otel.{name}"))
    for package in ("dialects", "model", "normal", "assembly"):
        for each in pkgutil.iter_modules([f"{pandaeval_otel.__path__[0]}/{package}"]):
            yield from _of(importlib.import_module(f"pandaeval_otel.{package}.{each.name}"))


def _of(module: Any) -> Iterator[type[Any]]:
    for kind in vars(module).values():
        if isinstance(kind, type) and is_dataclass(kind) and not kind.__dataclass_params__.init:  # type: ignore[attr-defined]
            yield kind


def test_all_of_them_are_looked_at_here() -> None:
    assert set(_written_out()) == _KNOWN


@pytest.mark.skipif(is_compiled(), reason="compiled code takes no value of another type")
@pytest.mark.parametrize("kind", sorted(_KNOWN, key=lambda kind: kind.__name__))
def test_each_field_is_a_parameter_in_its_place_and_kept(kind: type[Any]) -> None:
    names = [field.name for field in fields(kind) if field.init]
    assert [*inspect.signature(kind).parameters] == names
    values = [object() for _ in names]
    made = kind(*values)
    assert [getattr(made, name) for name in names] == values
    assert [getattr(replace(made), name) for name in names] == values


def test_what_is_left_out_is_empty_and_nobody_elses() -> None:
    one, other = RawSpan("t", "s"), RawSpan("t", "s")
    assert (one.attributes, one.events, one.links, one.resource.service) == ({}, (), (), "unknown_service")
    assert one.attributes is not other.attributes
    assert Span("t", "s", "", "a", Kind.STEP, 0, 0).attributes == {}
    assert Usage() == Usage(0, 0, 0, 0, 0)
    assert Message("user") == Message("user", (), "")
