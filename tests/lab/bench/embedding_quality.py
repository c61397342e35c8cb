"""Measures an embedder: ``python tests/lab/bench/embedding_quality.py [SPEC]``.

Prints AUROC, bands, speed and memory.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import Bands, Embedder, load
from pandaeval_collector.analysis.embedding.text import embed_texts

SET = Path(__file__).with_name("embedding_set.json")
SPEED_TEXTS = 2000
SPEED_TOKENS = 50

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Quality:
    """Cosines by pair kind, and cosine times Jaccard by label."""

    named: Numbers
    terse: Numbers
    other: Numbers
    same: Numbers
    copy: Numbers
    different: Numbers

    @property
    def answer(self) -> Numbers:
        return np.concatenate([self.named, self.terse])

    @property
    def bands(self) -> Bands:
        """Return ``off`` and ``on`` quartiles, and ``cut`` with fewest errors."""
        grid = np.round(np.arange(0.0, 1.0, 0.01), 2)
        right = [(self.answer >= cut).mean() + (self.other < cut).mean() for cut in grid]
        best = grid[np.isclose(right, max(right))]
        off, on = np.percentile(self.other, 75), np.percentile(self.answer, 25)
        return Bands(round(max(0.0, float(off)), 2), round(float(best.mean()), 2), round(float(on), 2))


def auroc(right: Numbers, wrong: Numbers) -> float:
    ordered = np.sort(wrong)
    below = np.searchsorted(ordered, right, "left") + np.searchsorted(ordered, right, "right")
    return float(below.mean() / (2 * len(wrong)))


def jaccard(left: str, right: str) -> float:
    """Return shared by total words."""
    one, two = (set(re.findall(r"\w{2,}", text.casefold())) for text in (left, right))
    return len(one & two) / max(1, len(one | two))


def measure(embedder: Embedder) -> Quality:
    """Score the committed set."""
    content = json.loads(SET.read_text("utf-8"))
    texts = content["texts"]
    rows = embed_texts(embedder, texts).rows

    def cosine(left: int, right: int) -> float:
        return float(rows[texts[left]].astype(np.float64) @ rows[texts[right]])

    def topic(kind: str) -> Numbers:
        return np.array([cosine(left, right) for left, right, _, each in content["topic"] if each == kind])

    def repeat(label: int) -> Numbers:
        pairs = [(left, right) for left, right, each, _ in content["repeat"] if each == label]
        return np.array([max(0.0, cosine(*pair)) * jaccard(texts[pair[0]], texts[pair[1]]) for pair in pairs])

    return Quality(topic("named"), topic("terse"), topic("other"), topic("same"), repeat(1), repeat(0))


def speed(embedder: Embedder, count: int) -> float:
    """Return texts of ``SPEED_TOKENS`` words per CPU second."""
    words = " ".join(json.loads(SET.read_text("utf-8"))["texts"]).split()
    starts = [place * 7 % (len(words) - SPEED_TOKENS) for place in range(count)]
    texts = [" ".join(words[start : start + SPEED_TOKENS]) for start in starts]
    embedder.embed(texts)
    begun = time.process_time()
    embedder.embed(texts)
    return count / (time.process_time() - begun)


def resident() -> float:
    """Return this process's memory in MB (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def main(spec: str) -> None:
    before, begun = resident(), time.process_time()
    embedder = load(spec)
    embedder.embed(["load"])
    seconds, after = time.process_time() - begun, resident()
    quality = measure(embedder)
    print(f"embedder                       {embedder.id}")
    print(f"on topic against off topic     AUROC {auroc(quality.answer, quality.other):.4f}")
    print(f"  answers that name it         AUROC {auroc(quality.named, quality.other):.4f}")
    print(f"  terse answers                AUROC {auroc(quality.terse, quality.other):.4f}")
    print(f"  against same subject         AUROC {auroc(quality.answer, quality.same):.4f}")
    print(f"copy against other answer      AUROC {auroc(quality.copy, quality.different):.4f} (cosine x Jaccard)")
    for name in ("named", "terse", "other", "same", "copy", "different"):
        spread = np.percentile(getattr(quality, name), [1, 5, 25, 50, 75, 95, 99])
        print(f"  {name:10} 1/5/25/50/75/95/99 %  " + " ".join(f"{value:6.3f}" for value in spread))
    print(f"measured bands                 {quality.bands}, in use {embedder.bands}")
    print(f"texts of {SPEED_TOKENS} words per second   {speed(embedder, SPEED_TEXTS if seconds < 0.5 else 100):.0f}")
    print(f"load                           {seconds:.2f} s, {after - before:.0f} MB (process {after:.0f} MB)")
    print(f"peak                           {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "embedded")
