"""What a collector would find out at its start, or over its first trace, found beforehand."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from pandaeval_collector.base.errors import installation
from pandaeval_collector.config import Config, Problem

_OF_EMBEDDERS = {
    "onnx-minilm": ("onnx", ("onnxruntime", "tokenizers")),
    "model2vec": ("model2vec", ("model2vec",)),
    "litellm": ("judge", ("litellm",)),
}
_BY_KEY_ALONE = ("openai", "anthropic", "gemini", "groq", "mistral", "deepseek", "openrouter", "xai")
"""Providers that let nobody in without a key from the environment, ``PROVIDER_API_KEY``."""


def start_problems(config: Config) -> Iterator[Problem]:
    """Yields what a start would refuse on this machine: missing packages of extras, files that cannot be used, a data
    directory that cannot be written to. The problems have keys and no places in the file."""
    for key, extra, packages in _needed(config):
        for package in packages:
            if not _is_there(package):
                yield Problem(key, f"{package} is not installed; install it with: {installation(extra)}")
                break
    if trouble := unwritable(Path(config.store.path)):
        yield Problem("store.path", trouble)


def judge_notes(config: Config, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yields a problem for each judge whose provider, by the model's name, asks for a key that is not set."""
    judge = config.judge
    if judge.api_key_env is not None or judge.api_base is not None or judge.model is None:
        return
    models = {"judge.model": judge.model, **{f"judge.models.{name}": model for name, model in judge.models.items()}}
    for key, model in models.items():
        provider, slash, _ = model.partition("/")
        if not slash or provider not in _BY_KEY_ALONE:
            continue
        brand = provider.upper()
        # Some take a key under further names, so whoever set anything of the provider's is left to it.
        if not any(name.startswith(f"{brand}_") and held.strip() for name, held in environ.items()):
            yield Problem(key, f"{brand}_API_KEY is not set, and {provider} asks for a key (or set judge.api_key_env)")


def _needed(config: Config) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    if config.judge.model is not None:
        yield "judge.model", "judge", ("litellm", "aiolimiter")
        if config.redact.pii:
            yield "redact.pii", "pii", ("presidio_analyzer",)
    scheme = config.embedding.model.strip().partition(":")[0]
    if scheme in _OF_EMBEDDERS:
        yield "embedding.model", *_OF_EMBEDDERS[scheme]


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def unwritable(path: Path) -> str:
    """Returns why nothing can be written in the directory ``path``, made already or not; empty where something can."""
    there = path.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        # A file in the place of the directory itself is reported elsewhere.
        return "" if there == path.absolute() else f'"{path}" cannot be made: {there} is no directory'
    if not os.access(there, os.W_OK | os.X_OK):
        return f"{there} cannot be written to by this user"
    return ""
