"""The HTTP API: what was scored, for pages and programs. Reads the store in a process of its own, or on threads."""

from pandaeval_collector.show.api.lookouts import Lookouts

__all__ = ["Lookouts"]
