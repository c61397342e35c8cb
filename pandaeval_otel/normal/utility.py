"""Detects utility calls of editors and frameworks: titles, summaries, tags, follow-up questions and message
classification.

Evidence is the instructions and the absence of tools. Summaries and classifications also need a session.
Classifications also need an editor or a matching name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from pandaeval_otel.model import Kind, Span

_READ = 600
"""Characters read from the instructions."""
_TALK = r"(?:chats?|chatbots?|conversations?|requests?|threads?|sessions?|dialog(?:ue)?s?|discussion|messages?)\b"
_MADE = r"\b(?:generat|craft|writ|creat|provid|suggest|produc|extract|com|need|respond|giv|return)\w*\b[^.\n]{0,80}\b"
_KINDS = (
    (
        "title",
        rf"\btitle generator\b|\bnew conversation topic\b|\b(?:conversation|chat|session|thread) titles?\b"
        rf"|{_MADE}titles?\b[^.]{{0,30}}\b(?:for|based|(?:summari[sz]|captur|describ)\w+)\b[^.]{{0,60}}\b(?:{_TALK}|topic\b)",
    ),
    ("tags", rf"\bbroad tags\b|{_MADE}tags\b[^.]{{0,80}}\b(?:chat|conversation)"),
    ("follow_up", r"\bfollow-?up (?:questions?|prompts?|suggestions?)\b[^.]{0,120}\b(?:user|chat|conversation)"),
    (
        "summary",
        r"\bsummar(?:y|i[sz]e|i[sz]ing|i[sz]ation)\b[^.]{0,60}\b(?:the|this|our|these|previous|prior)\s+(?:\w+\s+){0,2}"
        r"(?:conversation|chat|tool calls?|thread|session|dialogue|(?:message|chat) history)\b",
    ),
    (
        "classification",
        r"\b(?:classif(?:y|ies|ying)|categori[sz]e)\b[^.]{0,80}\b(?:message|request|prompt|query|question|intent|input)\b"
        r"|\bwho should speak next\b|\bnext speaker\b",
    ),
)
_OF_UTILITY = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _KINDS)
_TEMPLATE = re.compile(r"###? Task|\b(?:following|below)\b|\byour task is\b|\{", re.IGNORECASE)
_EDITOR = re.compile(
    r"copilot|vscode|claude[._-]?code|gemini[._-]?cli|opencode|cursor|codex|cline|webui|librechat|zed\b", re.IGNORECASE
)
_NAMED = re.compile(r"title|summar|classif|categor|intent|next.?speaker|follow.?up|tagger", re.IGNORECASE)
_NEEDS_SESSION = ("summary", "classification")


def utility_of(span: Span, *, in_session: bool) -> str:
    """Return a utility call's purpose; ``""`` for calls of the conversation."""
    if span.kind is not Kind.LLM or span.tools or any(message.tool_requests for message in span.output or ()):
        return ""
    given = span.input or ()
    instructions = span.system or next((message.text for message in given if message.role == "system"), "")
    kind = _kind(instructions[:_READ])
    if not kind and given and given[-1].role == "user":
        # The last message may be a framework's template rather than a user's words.
        text = given[-1].text[:_READ]
        kind = _kind(text) if _TEMPLATE.search(text) is not None else ""
    is_named = _EDITOR.search(f"{span.scope} {span.service}") or _NAMED.search(span.agent_name)
    if kind == "classification" and is_named is None:
        return ""
    if kind in _NEEDS_SESSION and not in_session:
        return ""
    return kind


def conversation_calls(calls: Sequence[Span]) -> Sequence[Span]:
    """Return the model calls of the conversation; all if there are none."""
    if len(calls) < 2:
        return calls
    return [call for call in calls if not utility_of(call, in_session=True)] or calls


@lru_cache(1024)
def _kind(text: str) -> str:
    return next((kind for kind, pattern in _OF_UTILITY if pattern.search(text) is not None), "")
