"""A dry-run judge: counts calls, and fabricates verdicts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pandaeval_collector.judge.call import ModelAnswer, ModelCall
from pandaeval_collector.judge.schemas import STEP
from pandaeval_collector.judge.shorten import tokens
from pandaeval_collector.store import StoreReader

_ECHO = re.compile(r'Set "echo" to ([0-9a-f]{8})')
_MESSAGES = 4
"""Messages of a question. A further message is a repair, which never follows a valid answer."""
_PER_MESSAGE, _PER_CALL = 4, 3
"""Tokens that a chat format adds."""
_TEXT = (
    "The agent looked the order up, found that it had left the depot, and said so; nothing in the results contradicts "
    "it, and no step was left out that the user had asked for."
)
_LIST = 3
_LATELY = 500
"""The newest verdicts, by which the length of answers is estimated."""

Shape = frozenset[str]
"""The names of a verdict's fields."""
CallCount = tuple[float, float, float]
"""Calls, and their tokens in and out."""
NO_CALL: CallCount = (0, 0, 0)


class CountingCaller:
    """Implements :class:`pandaeval_collector.judge.call.Caller`: counts calls and fabricates answers."""

    def __init__(self, usual: Mapping[Shape, Sequence[str]]) -> None:
        self.models: dict[str, CallCount] = {}
        self._usual = usual
        self._counts: dict[str, Callable[[str], int]] = {}

    async def complete(self, call: ModelCall) -> ModelAnswer:
        question = next((m["content"] for m in reversed(call.messages) if _ECHO.search(m["content"])), "")
        schema = (call.response_format or {}).get("json_schema", {}).get("schema", {})
        made, echo = sample_value(schema, question), _ECHO.search(question)
        echo_fields = {"echo": echo[1] if echo is not None else "", "instructed": False}
        answer: dict[str, Any] = {**made, **echo_fields} if isinstance(made, dict) else echo_fields
        text = json.dumps(answer, ensure_ascii=False)
        if len(call.messages) <= _MESSAGES:
            count = self._counts.setdefault(call.model, counter(call.model))
            sent = sum(count(message["content"]) + _PER_MESSAGE for message in call.messages) + _PER_CALL
            usual = self._usual.get(frozenset(answer)) or [text]
            received = sum(map(count, usual)) / len(usual)
            calls, into, out = self.models.get(call.model, NO_CALL)
            self.models[call.model] = calls + 1, into + sent, out + min(round(received), call.max_tokens)
        return ModelAnswer(text, model=call.model)


def usual_answers(live: StoreReader) -> dict[Shape, list[str]]:
    found: dict[Shape, list[str]] = {}
    query = "SELECT body FROM verdicts ORDER BY created_at DESC LIMIT ?"
    for (body,) in live.connection().execute(query, (_LATELY,)):
        verdict = json.loads(body).get("verdict")
        if isinstance(verdict, dict):
            found.setdefault(frozenset(verdict), []).append(json.dumps(verdict, ensure_ascii=False))
    return found


def counter(model: str) -> Callable[[str], int]:
    """Return a token counter: OpenAI's tokenizer if installed, else a cautious estimate. Downloads nothing."""
    judge = find_spec("litellm")
    if judge is None or not judge.submodule_search_locations or find_spec("tiktoken") is None:
        return tokens
    tables = Path(next(iter(judge.submodule_search_locations))) / "litellm_core_utils" / "tokenizers"
    if not tables.is_dir():
        return tokens
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(tables))
    import tiktoken

    bare = model.rpartition("/")[2]
    older = bare.startswith(("gpt-4-", "gpt-3")) or bare == "gpt-4"
    try:
        encoding = tiktoken.get_encoding("cl100k_base" if older else "o200k_base")
    except Exception:  # noqa: BLE001 - a missing table is downloaded, which can fail in many ways
        return tokens
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def sample_value(schema: Mapping[str, Any], question: str = "", text: str = _TEXT) -> Any:
    """Fabricate a value that fits ``schema``."""

    def made(part: Mapping[str, Any]) -> Any:
        match part:
            case {"$ref": str(reference)}:
                return made(schema["$defs"][reference.rpartition("/")[2]])
            case {"anyOf": [first, *_]}:
                return made(first)
            case {"enum": [first, *_]} | {"const": first}:
                return first
            case {"type": "object"} | {"properties": _}:
                return {key: made(each) for key, each in part.get("properties", {}).items()}
            case {"type": "array"}:
                return _list(part, made(part.get("items", {})), question)
            case {"pattern": str(pattern)}:
                return "turn 1" if pattern == STEP else "00000000"
            case {"type": "string"}:
                return text[: int(part.get("maxLength", len(text)))]
            case {"type": "boolean"}:
                return False
            case {"type": "integer"}:
                return part.get("minimum", 0)  # the first choice is the best
            case {"type": "number"}:
                return part.get("maximum", 1)
        return None

    return made(schema)


def _list(schema: Mapping[str, Any], one: Any, question: str) -> list[Any]:
    most = int(schema.get("maxItems", _LIST))
    if type(one) is int or (isinstance(one, str) and "enum" not in schema["items"]):
        return []  # lists contain numbers and names of parts of the record, which can be missing
    if isinstance(one, dict):
        fenced = question.partition("exactly these fields")[0]
        for key in one:
            found = re.findall(rf'"{re.escape(key)}": (\d+)', fenced)
            if found and type(one[key]) is int:
                return [one | {key: int(number)} for number in found[:most]]
    return [one] * min(_LIST if question else 1, most)
