"""The HTTP API: what was scored, for pages and programs. Reads the store's file on threads of its own."""

from pandaeval_collector.show.api.lookouts import Lookouts

__all__ = ["Lookouts"]
