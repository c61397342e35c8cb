"""What differs from call to call without meaning anything: ids, times, counters, costs."""

from __future__ import annotations

import re
from functools import lru_cache

ARGUMENT_KEYS = frozenset(
    """
    requestid reqid clientrequestid requesttoken clienttoken correlationid idempotencykey idempotencytoken nonce
    timestamp ts requesttime requesttimestamp requestedat sentat servertime generatedat toolcallid callid
    fetchedat retrievedat queriedat elapsed elapsedms duration durationms latency latencyms tookms
    """.split()  # noqa: SIM905 - a list of words to be read
)
"""Keys of arguments (lower case, letters and digits only)."""
RESULT_KEYS = ARGUMENT_KEYS | frozenset(
    """
    id uuid guid etag asof now servedby
    attempt attempts retry retries retrycount callcount calls numcalls requestcount requests hits hitcount counter seq
    sequence sequencenumber iteration remainingrequests ratelimitremaining quotaremaining
    cost costusd totalcost credits creditsused usage tokens inputtokens outputtokens totaltokens tokencount
    took runtime processingtime responsetime executiontime elapsedseconds elapsedtime durationseconds latencyseconds
    """.split()  # noqa: SIM905 - a list of words to be read
)
"""The same of results, which hold more of them."""
_NOT_ALNUM = re.compile(r"[^a-z0-9]")
_ID_OR_TIME = re.compile(r"(?:[_-](?:id|uuid|guid|at|ts|timestamp|ms)|[a-z](?:Id|ID|UUID|At|Timestamp|Ms))$")
_CHANGING_TEXT = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"  # UUID
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?",  # ISO 8601 time
    re.IGNORECASE,
)
_LONG_NUMBER = re.compile(r"[0-9a-f]{16,}|\d{10,}", re.IGNORECASE)
_WORDS_LEFT = 12
"""Letters and digits that have to be left of a text for its ids and times to be beside the point."""


@lru_cache(maxsize=4096)
def in_arguments(key: str) -> bool:
    """Whether the value of an argument of this name says nothing."""
    return _NOT_ALNUM.sub("", key.lower()) in ARGUMENT_KEYS


@lru_cache(maxsize=4096)
def in_results(key: str) -> bool:
    """Whether the value of this key of a result says nothing new when it differs."""
    return _NOT_ALNUM.sub("", key.lower()) in RESULT_KEYS or _ID_OR_TIME.search(key) is not None


def masked_error(text: str | None) -> str | None:
    """Removes ids and times, long numbers included, from the text of an error."""
    return None if text is None else _LONG_NUMBER.sub("*", _CHANGING_TEXT.sub("*", text))


def masked(text: str) -> str:
    """Removes UUIDs and times of day from a text, unless it is about little else."""
    if len(text) < 16 or _CHANGING_TEXT.search(text) is None:
        return text
    left = _CHANGING_TEXT.sub("*", text)
    return left if len(_NOT_ALNUM.sub("", left.lower())) >= _WORDS_LEFT else text
