"""Deletes data by user, session, trace or age, in steps that survive restarts.

Hashes of deleted ids prevent restoring data until the retention ends.
"""

from pandaeval_collector.store.deleting.deletions import Deletions, complete
from pandaeval_collector.store.deleting.hashes import forget
from pandaeval_collector.store.deleting.log import LOG
from pandaeval_collector.store.deleting.preview import preview, sinks

__all__ = ["LOG", "Deletions", "complete", "forget", "preview", "sinks"]
