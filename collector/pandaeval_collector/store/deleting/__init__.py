"""Deletes the data of a user, a session, a trace or of old days, in bounded steps, and keeps it deleted.

The first transaction stores the selector. Each step continues from there, so a start after a kill completes the
deletion. Hashes of the deleted IDs stay until the retention ends: late spans, and decisions that were under way, do
not bring the data back.
"""

from pandaeval_collector.store.deleting.deletions import Deletions, complete
from pandaeval_collector.store.deleting.hashes import forget
from pandaeval_collector.store.deleting.log import LOG
from pandaeval_collector.store.deleting.preview import preview, sinks

__all__ = ["LOG", "Deletions", "complete", "forget", "preview", "sinks"]
