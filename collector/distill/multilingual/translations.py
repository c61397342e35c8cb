"""Translations from catalogues in packages of permissive licence.

``PACKAGES`` names downloaded archives, see ``README.md``. Readers yield ``(key, language, text)``; texts of a key are
translations.
"""

from __future__ import annotations

import ast
import json
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LANGUAGES = {
    "ar", "bg", "ca", "cs", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "he", "hi", "hr", "hu", "id", "it",
    "ja", "ko", "lt", "lv", "nl", "no", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "th", "tr", "uk", "vi", "zh",
}  # fmt: skip
# What packages call a language where that is not its code; the rest of a name such as pt-BR is left out.
OTHERWISE = {"nb": "no", "nn": "no", "iw": "he", "in": "id", "fil": "", "sr-latn": "", "zh-hant": "", "zh-tw": ""}

Texts = Iterator[tuple[str, str, str]]


@dataclass(frozen=True)
class Catalogue:
    """``file``: pattern of the package's name. ``licence``: text for NOTICE."""

    file: str
    licence: str
    read: Callable[[Path], Texts]


def language(name: str) -> str:
    name = name.lower().replace("_", "-")
    base = OTHERWISE.get(name, name.partition("-")[0])
    code = OTHERWISE.get(base, base)
    return code if code in LANGUAGES else ""


def home_assistant(path: Path) -> Texts:
    """Smart home: heating, light, weather, energy, cleaning, media, security, cars, set-up."""
    for name, content in _members(path, r"/translations/[\w-]+\.json$"):
        parts = name.split("/")
        for key, text in _leaves(json.loads(content)):
            yield f"{parts[2]}:{key}", language(parts[-1].removesuffix(".json")), text


def home_assistant_frontend(path: Path) -> Texts:
    for name, content in _members(path, r"/translations/.*-[0-9a-f]{32}\.json$"):
        code = re.sub(r"-[0-9a-f]{32}\.json$", "", name.split("/")[-1])
        for key, text in _leaves(json.loads(content)):
            yield key, language(code), text


def kolibri(path: Path) -> Texts:
    """Schools: lessons, quizzes, learners, teachers, offline devices."""
    for name, content in _members(path, r"locale/\w+/LC_MESSAGES/[\w.-]+\.json$"):
        parts = name.split("/")
        for key, text in _leaves(json.loads(content)):
            yield f"{parts[-1]}:{key}", language(parts[-3]), text


def gettext(path: Path) -> Texts:
    """All gettext catalogues; the key is the English text."""
    for name, content in _members(path, r"\.po$"):
        code = language(name.split("/LC_MESSAGES")[0].split("/")[-1])
        for message, translated in _messages(content.decode("utf-8", "replace")) if code else ():
            yield message, "en", message
            yield message, code, translated


def typescript(path: Path) -> Texts:
    for name, content in _members(path, r"lib/[\w-]+/diagnosticMessages\.generated\.json$"):
        for key, text in json.loads(content).items():
            yield key, language(name.split("/")[-2]), re.sub(r"_\d+$", "", text)
            yield key, "en", re.sub(r"_\d+$", "", key).replace("_", " ")


def annotations(path: Path) -> Texts:
    """Names and keywords of things, people, animals, food, places, flags, symbols."""
    for name, content in _members(path, r"annotations(Derived)?/[\w-]+/annotations\.json$"):
        (content_of,) = json.loads(content).values()
        for sign, words in (content_of.get("annotations") or content_of.get("annotationsDerived", {})).items():
            named = [*words.get("tts", ()), *words.get("default", ())]
            yield sign, language(name.split("/")[-2]), ", ".join(dict.fromkeys(named))


def _members(path: Path, pattern: str) -> Iterator[tuple[str, bytes]]:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            for name in sorted(wheel.namelist()):
                if re.search(pattern, name):
                    yield name, wheel.read(name)
        return
    with tarfile.open(path) as package:
        for member in sorted(package.getmembers(), key=lambda each: each.name):
            file = package.extractfile(member) if re.search(pattern, member.name) else None
            if file is not None:
                yield member.name, file.read()


def _leaves(tree: Any, key: str = "") -> Iterator[tuple[str, str]]:
    for name, value in tree.items() if isinstance(tree, dict) else ():
        if isinstance(value, dict):
            yield from _leaves(value, f"{key}{name}.")
        elif isinstance(value, str):
            yield key + name, value


def _messages(content: str) -> Iterator[tuple[str, str]]:
    """Return message and translation of entries that are neither fuzzy nor plural."""
    for entry in re.split(r"\n\s*\n", content):
        if "\n#~" in f"\n{entry}" or re.search(r"^#,.*fuzzy", entry, re.MULTILINE) or "msgid_plural" in entry:
            continue
        found = {
            kind: "".join(ast.literal_eval(line) for line in re.findall(r'"(?:[^"\\\n]|\\.)*"', quoted))
            for kind, quoted in re.findall(r'^(msgid|msgstr) ((?:"(?:[^"\\\n]|\\.)*"\s*)+)', entry, re.MULTILINE)
        }
        if found.get("msgid") and found.get("msgstr"):
            yield found["msgid"], found["msgstr"]


def plain(text: str) -> str:
    """Remove tags, placeholders, addresses, menu marks and extra white space."""
    text = re.sub(r"<[^>]*>|https?://\S+|`[^`]*`", " ", text)
    text = re.sub(r"\{+[^{}]*\}+|\[%[^\]]*%\]|%\(\w+\)\w|%[sdif]|\$\w+|[*_#|~^]", " ", text)
    return re.sub(r"\s+", " ", text).strip()


CATALOGUES = (
    Catalogue("homeassistant-*.whl", "Apache-2.0", home_assistant),
    Catalogue("home_assistant_frontend-*.whl", "Apache-2.0", home_assistant_frontend),
    Catalogue("kolibri-*.whl", "MIT", kolibri),
    Catalogue("apache_superset-*.whl", "Apache-2.0", gettext),
    Catalogue("pgadmin4-*.whl", "PostgreSQL", gettext),
    Catalogue("django-*.whl", "BSD-3-Clause", gettext),
    Catalogue("wagtail-*.whl", "BSD-3-Clause", gettext),
    Catalogue("django_oscar-*.whl", "BSD-3-Clause", gettext),
    Catalogue("typescript-*.tgz", "Apache-2.0", typescript),
    Catalogue("cldr-annotations-full-*.tgz", "Unicode-3.0", annotations),
    Catalogue("cldr-annotations-derived-full-*.tgz", "Unicode-3.0", annotations),
)
