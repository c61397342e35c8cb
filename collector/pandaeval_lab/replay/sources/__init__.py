"""Trace stores of others as inputs: what Jaeger and Tempo hold is fetched over their query APIs."""

from __future__ import annotations

from pandaeval_lab.replay.sources.source import TraceSource

__all__ = ["TraceSource"]
