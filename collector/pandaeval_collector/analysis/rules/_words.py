"""The words of tool names that tell what a tool does. All lower case, and in English, as nearly all names are."""

from __future__ import annotations

READ = frozenset(
    """
    get list search find read fetch query check look lookup view show describe count inspect browse retrieve
    calculate compute compare convert parse extract translate validate verify analyze analyse summarize summarise
    preview explain estimate detect identify measure is has can exists ls cat grep head tail stat peek ping whois
    """.split()  # noqa: SIM905 - a list of words to be read
)
WRITE = frozenset(
    """
    accept activate add allocate append apply approve archive assign attach authorize ban block buy cancel clear close
    commit confirm connect create deactivate debit delay delete deploy deposit detach disable disconnect dismiss drop
    edit enable enqueue enroll exchange expire grant hold ingest init insert install invite kill launch lock make merge
    migrate modify mount mute notify overwrite pay place provision publish purchase put reactivate reassign rebook
    reboot reconnect redeem register reject release remove rename renew replace replenish reply reseat reschedule
    reserve reset resolve restart restore resume revert revoke rollback rotate save send set stop submit subscribe
    suspend swap terminate topup trash trigger unassign unblock uninstall unlock unsubscribe update upgrade upload
    upsert void withdraw write
    """.split()  # noqa: SIM905 - a list of words to be read
)
"""Verbs that change something wherever they stand in a name."""
AMBIGUOUS = frozenset(
    """
    book change charge comment copy credit export fork import issue log mail message order patch post process record
    refuel refund report request return schedule share ship sign start store sync tag transfer transition
    """.split()  # noqa: SIM905 - a list of words to be read
)
"""Words that are a verb in one name and a noun in another (``order_pizza``, ``order_status``)."""
RUNNING = frozenset(
    """
    bash cmd code command computer execute interpreter notebook python repl shell terminal
    """.split()  # noqa: SIM905 - a list of words to be read
)
"""Tools that do whatever they are told."""
FACTS = frozenset(
    """
    balance count date detail details fee fees history id ids info information list log logs name number overview
    policy price prices quote rate rates report reports review reviews schema status summary time times total totals
    """.split()  # noqa: SIM905 - a list of words to be read
)
"""A name that ends in one of these asks for facts."""
STEPWISE = frozenset(
    """
    next previous prev scroll press click tap swipe drag move step type key hotkey turn rotate increment decrement
    advance forward back up down left right undo redo toggle append add push pop roll draw spin
    """.split()  # noqa: SIM905 - a list of words to be read
)
VIEWING = frozenset(
    "page scroll up down left right next previous prev back forward top bottom go view zoom".split()  # noqa: SIM905
)
"""Words of tools that show another part of a page."""
COMPUTING = frozenset({"calc", "calculator", "calculate", "calculation", "compute", "arithmetic", "math", "maths"})
WAIT = frozenset({"wait", "sleep", "await", "poll"})
WAIT_ALONE = frozenset({"pause", "delay", "backoff"})
THINK = frozenset({"think", "thinking", "thought", "reflect", "sequentialthinking"})
ENDING = frozenset({"end", "finish", "finalize", "hangup", "complete", "done", "terminate", "conclude"})
SPEAKING = frozenset({"reply", "respond", "answer", "say", "speak", "send", "post", "message"})
ASKING = frozenset({"ask", "request", "prompt", "confirm"})
