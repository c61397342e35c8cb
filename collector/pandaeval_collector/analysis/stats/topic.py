"""Separates topic words from small talk, in English and partly other languages."""

from __future__ import annotations

import re
import unicodedata

from pandaeval_collector.base.lazy_pattern import lazily

# The content words of a text, for comparing the wording of two outputs.
STOPWORDS_VERSION = "1"
STOPWORDS = frozenset(
    """
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
    """.split()  # noqa: SIM905 - a readable list of words
)


# Chinese characters and Japanese kana are written without spaces, so each counts as a word.
_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
# Vowel signs and other marks that belong to a word, though Python's \w leaves them out.
_MARKS = "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u0900-\u0963\u0966-\u109f"
_LETTER = rf"(?:(?![{_CJK}])[^\W_]|[{_MARKS}])"
_TOKEN = re.compile(rf"[{_CJK}]|{_LETTER}+(?:'{_LETTER}+)*")
_NO_WORD = re.compile(rf"[^\x00-\x7f\w{_MARKS}{_CJK}]")
_ASCII_TOKEN = re.compile(r"[a-z0-9]+(?:'[a-z0-9]+)*")
_PLAIN_WORD = re.compile(r"[a-z0-9]{2,}")
"""Words of ASCII text without apostrophes, as _TOKEN finds them, in a fraction of the time."""
_CJK_CHARACTER = re.compile(rf"[{_CJK}]")
FEWEST = 2
"""Minimum content words of a message with a subject. For a question or an answer, a single word is enough."""
ENOUGH = 6
"""Minimum content words of a message and of its answer to recognise different subjects."""
ENOUGH_ASKED = 3
"""Minimum content words of the message if message and answer are completely different."""
PLAINLY = 200
"""A text of more characters has a subject."""
LONGEST = 1200
"""A text of more characters is not searched for talk."""
STEM = 5
"""Words that begin with the same characters count as the same word."""
_TALK_WORDS = frozenset(
    """
    yes no not yeah yep nope ok okay sure please thanks thank welcome hi hello hey dear good great fine perfect nice
    awesome sorry sounds looks seems right correct exactly absolutely certainly definitely course alright indeed go
    ahead proceed continue confirm confirmed confirming agree want wants like need needs help assist know let get got
    give make see think understand take use try again now still really actually maybe perhaps one ones first second
    third last next option everything anything something nothing thing things that's it's there's here's don't can't
    won't isn't didn't doesn't haven't cannot able possible way me us more much many lot only even well bit let's
    i've what's done ready understood noted same instead today back user id mail email regarding further
    oh ah um uh hm hmm oops whoops wow huh appreciate appreciated
    ja nein bitte danke gut gerne mach weiter genau natürlich hallo
    oui non merci bien sûr vas fais bonjour daccord d'accord
    sí si por favor gracias vale bueno claro adelante hola
    sim não obrigado obrigada favor certo grazie prego bene va
    好 的 是 请 謝 谢 对 はい お願いします 네
    """.split()  # noqa: SIM905 - a readable list of words
)
_CODE = lazily(r"(?<!\S)\S*[@_#\\/\d](?:\S*[^\s.,;:!?])?", 0)
"""Addresses, numbers and ids, whose letters have no meaning."""
_CLAUSE_END = lazily(r"[.!?\n,;:。！？，、；—–]+| - | (?:and|but|so) ", 0)
_SENTENCE = lazily(r"[^.!?\n。！？]+[.!?\n。！？]*", 0)
_OF_BOTH = (
    r"\b(?:sounds|looks|works|that's|is|are) (?:all )?(?:good|great|fine|correct|right|perfect)\b"
    r"|\b(?:go ahead|proceed with|goodbye|bye)\b|\bplease (?:do|proceed|continue)\b|\bthank(?:s| you)\b"
    r"|\byou're (?:welcome|the)\b|\bhave a (?:great|nice|good|wonderful|safe)\b"
    r"|\bmy (?:\w+ ){0,2}(?:name|id|number|e-?mail|address|code|phone|password|pin) is\b|\be-?mail\b|\buser id\b"
    r"|\b(?:zip|postal|post) ?code\b|\b(?:confirmation|order|booking|phone|account|customer) (?:number|id) is\b"
    r"|\b(?:it's|this is|i'm|i am|name(?:'s| is)) (?-i:[A-Z][a-z]+ [A-Z][a-z]+)"
    r"|\bi(?: am|'m)? (?:live|living|reside) in\b"
    r"|\bappreciate (?:you|your|it|that|the help|all)\b"
)
"""Consent, thanks, and names, addresses or numbers of the user."""
_OF_AGENTS = (
    r"\?\s*$"  # a question back
    r"|\b(?:could|can|would|will) you (?:please |kindly )?(?:provide|confirm|tell|share|clarify|specify|give|let)\b"
    r"|\bplease (?:provide|confirm|tell|share|clarify|specify|let me know|wait|hold|stand by|reply|contact|try again|"
    r"give me)\b"
    r"|\b(?:i|we)(?: will|'ll)? (?:first )?need (?:to (?:verify|confirm|authenticate|know|check|have)|your|you to|some|"
    r"a few|the following|more)\b"
    r"|\blet me (?:know|check|look|see|verify|transfer|connect|find|get|take|try|go|just)\b"
    r"|\b(?:sorry|apologi[sz]e|apologies|unfortunately|unable to|cannot|can't|not able to|don't have access)\b"
    r"|\b(?:transferr?(?:ed|ing)?|handed|handing|connect(?:ed|ing)|escalat\w+|forward\w*) (?:you |this |it |over )*to\b"
    r"|\b(?:human|live) (?:agent|representative)\b|\bhold on\b|\bone moment\b"
    r"|\bbear with\b|\bjust a (?:moment|second)\b"
    r"|\b(?:happy|glad|pleased|here) to (?:help|assist)\b|\b(?:help|assist) you with (?:that|this|it|your)\b"
    r"|\b(?:if|is there|do) you (?:have|need|want)\b|\bfeel free\b|\btake your time\b"
    r"|\b(?:leider|malheureusement|désolée?|lamentablemente|lo siento|infelizmente|desculpe|purtroppo|mi dispiace|"
    r"helaas|tyvärr|bitte (?:geben|nennen|bestätigen|teilen)|veuillez|por favor|per favore|к сожалению|пожалуйста)\b"
    r"|抱歉|请(?:提供|告诉|确认|稍)|申し訳|お待ち|죄송|주세요"
)
"""Questions back, apologies and refusals, hand-overs, offers of help."""
_CONSENT = lazily(
    r"\W*(?:oh,? )?(?:yes|yeah|yep|sure|ok|okay|alright|absolutely|go ahead|please (?:do|proceed|go ahead)|sounds good|"
    r"that's (?:right|correct|fine)|ja|oui|sí|sim|si)\b(?![^.!?\n]*\?)"
)
_WHAT_NEXT = lazily(
    r"\b(?:what|anything) (?:else|next|now)\b|\bwhat (?:should|can|could|do) (?:i|we) (?:do|try|check)\b"
    r"|\bwhat(?:'s| is) (?:the )?next\b|\bshould i change anything\b"
)
_HANDS_OVER = lazily(
    r"\b(?:transferr?(?:ed|ing)?|connect(?:ed|ing)?|escalat\w+|hand(?:ed|ing)) (?:\w+ ){0,3}to (?:\w+ ){0,3}"
    r"(?:human|live|agent|representative|specialist|supervisor|manager|colleague|person|team)\b"
)
_TALK_OF_USERS = lazily(_OF_BOTH)
_TALK_OF_AGENTS = lazily(f"{_OF_BOTH}|{_OF_AGENTS}")


def content_tokens(text: str) -> frozenset[str]:
    """Return the distinct content words of ``text``, normalised (Unicode NFKC, case folded). Linear time.

    A token has at least two letters or digits, or is a Chinese or kana character. English function words are left out,
    negations stay (see ``STOPWORDS_VERSION``).
    """
    if text.isascii() and "'" not in text:
        return frozenset(_PLAIN_WORD.findall(text.lower())) - STOPWORDS
    if not text.isascii():
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).replace("\u2019", "'")
        text = _NO_WORD.sub(" ", folded)
    found = _ASCII_TOKEN.findall(text.lower()) if text.isascii() else _TOKEN.findall(text)
    words = {word.removesuffix("'s") for word in {*found}} - STOPWORDS
    return frozenset(word for word in words if len(word) >= 2 or _CJK_CHARACTER.match(word))


def have_topics(message: str, answer: str) -> tuple[bool, bool]:
    """Return whether a message has a topic, and whether its answer has content; the first only if the second holds."""
    if len(answer) <= PLAINLY and not topic_words(answer):
        return False, False
    fewest = 1 if message.endswith(("?", "？", "؟")) else FEWEST
    return len(message) > PLAINLY or len(topic_words(message_topic_text(message))) >= fewest, True


def may_be_off_topic(message: str, answer: str, unlike: bool = False) -> bool:
    """Return whether low similarity is meaningful: both texts have content, the message has its own topic, and the
    answer neither hands over nor repeats words. ``unlike``: not similar at all.
    """
    # If a message agrees to a proposal or asks for the next step, the agent chooses the subject of the answer.
    if _CONSENT.match(message) is not None or _WHAT_NEXT.search(message[-PLAINLY:]) is not None:
        return False
    if _HANDS_OVER.search(answer[:LONGEST]) is not None:
        return False
    stems, others = ({word[:STEM] for word in topic_words(text)} for text in (message, answer))
    return have_enough_words(message, answer, unlike) and stems.isdisjoint(others)


def have_enough_words(message: str, answer: str, unlike: bool = False) -> bool:
    """Return whether both have enough words besides small talk."""
    asks = len(topic_words(message_topic_text(message))) >= (ENOUGH_ASKED if unlike else ENOUGH)
    return asks and len(topic_words(answer_topic_text(answer))) >= ENOUGH


def topic_words(text: str) -> frozenset[str]:
    """Return the content words (:func:`content_tokens`) without small talk, numbers and codes."""
    return frozenset(filter(str.isalpha, content_tokens(text) - _TALK_WORDS))


def message_topic_text(message: str) -> str:
    """Return a user's message without small talk. Unchanged above ``LONGEST`` characters."""
    if len(message) > LONGEST:
        return message
    clauses = _CLAUSE_END.split(_without_codes(message))
    return ", ".join(clause for clause in clauses if clause and _TALK_OF_USERS.search(clause) is None)


def answer_topic_text(answer: str) -> str:
    """Return an answer without small talk. Unchanged above ``LONGEST`` characters."""
    if len(answer) > LONGEST:
        return answer
    sentences = _SENTENCE.findall(_without_codes(answer))
    return " ".join(sentence for sentence in sentences if _TALK_OF_AGENTS.search(sentence) is None)


def _without_codes(text: str) -> str:
    return _CODE.sub(" ", text.replace("\u2019", "'"))
