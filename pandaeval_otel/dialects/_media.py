"""Images, sound, video and documents in messages: that there was one, of which type, and where; never its content."""

from __future__ import annotations

from typing import Any

from pandaeval_otel.dialects._values import identifier
from pandaeval_otel.model import Media

MAX_URI = 2048
_MODALITIES = ("image", "audio", "video", "document", "file")
_TYPES = frozenset({"blob", "uri", "file", "media", "binary", "inline_data", "file_data"})
_URI_KEYS = ("uri", "url", "file_uri", "fileUri", "file_id", "image_url", "s3Location")
_MIME_KEYS = ("mime_type", "media_type", "mimeType", "mediaType", "format")


def media_of(block: dict[str, Any], kind: str) -> Media | None:
    """The medium that ``block`` (of type ``kind``, ``""`` when the block names none) stands for, else ``None``."""
    if kind:
        word = kind.lower().replace("-", "_").removeprefix("input_")
        if word not in _TYPES and not word.startswith(_MODALITIES):
            return None
        return _media(block, word)
    for key in ("image", "audio", "video", "document", "inline_data", "inlineData", "file_data", "fileData"):
        if key in block:
            return _media(block, key)
    return None


def _media(block: dict[str, Any], word: str) -> Media:
    members = [block, *(value for value in block.values() if type(value) is dict)]
    members += [value for member in members[1:] for value in member.values() if type(value) is dict]
    uri, mime = _find(members, _URI_KEYS), _find(members, _MIME_KEYS)
    if uri.startswith("data:"):
        mime = mime or uri[5:].partition(";")[0][:100]
        uri = ""
    modality = identifier(block.get("modality")) or _modality(word, mime)
    return Media(modality, uri[:MAX_URI], identifier(mime))


def _find(members: list[dict[str, Any]], keys: tuple[str, ...]) -> str:
    for member in members:
        for key in keys:
            value = member.get(key)
            if type(value) is str and value:
                return value
    return ""


def _modality(word: str, mime: str) -> str:
    for modality in _MODALITIES[:4]:
        if word.startswith(modality) or mime.startswith(modality):
            return modality
    return "document"
