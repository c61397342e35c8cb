"""English function words that say nothing about a text's content.

Negators (not, no, never, without, nor, none, cannot, and the n't forms) are content here: "refunded" and "not refunded"
are no repetition of each other. So are words of place and time (down, off, before …), and yes and ok.
A change of this list changes scores, so it comes with a new version.
"""

from __future__ import annotations

STOPWORDS_VERSION = "1"

_WORDS = """
    an the this that these those
    he she it we you they me him her us them my your his its our their mine yours hers ours theirs
    myself yourself himself herself itself ourselves yourselves themselves
    i'm i've i'd i'll you're you've you'd you'll he'd he'll she'd she'll it'd it'll
    we're we've we'd we'll they're they've they'd they'll that'll there'll let's
    am is are was were be been being do does did doing done have has had having
    will would shall should can could might
    and or but if then else than so because as while
    of at by for with from to in on into onto upon about via
    what which who whom whose when where why how
    there here very just also too such some any each all other
    """

STOPWORDS = frozenset(_WORDS.split())
