"""OpenAI embeddings as bags of hashed words."""

from __future__ import annotations

import base64
import math
import re
import struct
import zlib
from collections.abc import Mapping
from typing import Any

DIMENSIONS = 64


def embed(text: str) -> list[float]:
    """Return a unit vector of 64 numbers; zeros without words."""
    vector = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.casefold()):
        vector[zlib.crc32(word.encode()) % DIMENSIONS] += 1.0
    length = math.hypot(*vector)
    return [x / length for x in vector] if length else vector


def respond(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body, as floats or base64."""
    given = body.get("input", [])
    texts = [given] if isinstance(given, str) else [str(text) for text in given]
    packed = body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": _packed(embed(text)) if packed else embed(text)}
        for index, text in enumerate(texts)
    ]
    tokens = sum(len(text) // 4 + 1 for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": body.get("model", ""), "usage": usage}


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
