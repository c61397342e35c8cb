"""Deletes data by user, session, trace or age, in bounded steps that survive restarts.

Hashes of deleted ids stay until the retention ends, so late spans and pending decisions do not restore data.
"""

from pandaeval_collector.store.deleting.deletions import Deletions, complete
from pandaeval_collector.store.deleting.hashes import forget
from pandaeval_collector.store.deleting.log import LOG
from pandaeval_collector.store.deleting.preview import preview, sinks

__all__ = ["LOG", "Deletions", "complete", "forget", "preview", "sinks"]
