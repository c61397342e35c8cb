"""A judge that replays recorded replies, as for ``pandaeval demo``. Only for the worker process."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pandaeval_collector.judge.call import RECORDED, JudgeConfig
from pandaeval_collector.judge.known_models import USUAL_RECORD
from pandaeval_collector.judge.provider import Allowed, Reply, failed
from pandaeval_collector.judge.shorten import tokens

_ECHO = re.compile(r'Set "echo" to ([0-9a-f]{8})\.')


class RecordedReplies:
    """Replaces :class:`pandaeval_collector.judge.provider.ProviderCaller`.

    A reply matches by question and by a run with all its ``messages``.
    """

    def __init__(self, setup: JudgeConfig) -> None:
        assert setup.api_base is not None, "the name of the file"
        held = json.loads(Path(setup.api_base.removeprefix(RECORDED)).read_text(encoding="utf-8"))
        self._replies, self._models = held["replies"], setup.models

    async def warm_up(self) -> None:
        """No effect."""

    def known(self) -> dict[str, Any]:
        return {model: {"price": None, "budget": USUAL_RECORD} for model in self._models}

    async def answer(self, call: Mapping[str, Any], allowed: Allowed) -> Reply:
        """Return the recorded reply with this question's code and estimated tokens, else a refusal."""
        texts = [message["content"] for message in call["messages"]]
        _, _, record, question, *_ = texts
        name, model, most = call["response_format"]["json_schema"]["name"], call["model"], call["max_tokens"]
        for each in self._replies:
            if each["question"] == name and all(message in record for message in each["messages"]):
                await allowed(model, False, most)
                text = json.dumps({**each["reply"], "echo": _ECHO.findall(question)[-1]})
                usage = {"prompt_tokens": sum(map(tokens, texts)), "completion_tokens": tokens(text)}
                return {"ok": True, "text": text, "cut": False, "usage": usage, "max_tokens": most, "model": model}
        return failed("refused", "no reply to this is recorded")
