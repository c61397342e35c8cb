"""Whether a user's message asks for what was said before: again, in a second version, with more to it, in spite of the
answer, or because nothing came yet."""

from __future__ import annotations

import re

from pandaeval_otel.model import Trace

_AGAIN = re.compile(
    r"\b(?:again|once more|one more time|repeat(?: (?:it|that|this))?|re-?(?:send|check|confirm|phrase|state)|"
    r"double[- ]check|as i said|like i said|still|hello\?|are you (?:still )?there|"
    r"instead|actually|another|changed my mind|also|as well|in addition|"
    r"anyways?|any way|at least|reconsider\w*|(?:an|any) exceptions?|are you sure|"
    r"nochmals?|noch einmal|wiederhol\w*|immer noch|stattdessen|encore(?: une fois)?|répét\w*|toujours|plutôt|"
    r"otra vez|de nuevo|repit\w*|todavía|en cambio|di nuovo|ancora|ripet\w*|de novo|ainda)\b"
    r"|再度|もう一度|再び|还是|再(?:说|来|发)?一[遍次]|다시|ещё раз|снова|повтор",
    re.IGNORECASE,
)
_LONGEST = 2_000
"""Characters of a message that are looked at: the end of it, where the question stands."""


def asks_again(trace: Trace) -> bool:
    """Whether the trace's last message of a user asks for a repeat or a second version, adds to what it asked, or
    presses for it."""
    said = trace.turns[-1].user if trace.turns else trace.input
    return bool(said) and _AGAIN.search(str(said)[-_LONGEST:]) is not None
