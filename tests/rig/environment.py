"""The sets of ``frameworks.toml`` and the environment that each one is installed in."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
import venv
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

RIG = Path(__file__).resolve().parent
VENVS = RIG / "venvs"


@dataclass(frozen=True)
class Framework:
    """One set: ``requirements`` are pip's, ``env`` is added to the agent's environment, ``skip`` names scenarios."""

    name: str
    script: str
    requirements: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    skip: tuple[str, ...] = ()
    venv: str = ""

    @property
    def folder(self) -> Path:
        """Where the environment lies."""
        return VENVS / (self.venv or self.name)

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")

    def command(self) -> list[str]:
        """How the agent is started."""
        return [str(self.python), str(RIG / "agents" / self.script)]

    def install(self) -> None:
        """Make the environment unless one with the same requirements is there; uv is used when installed."""
        stamp = self.folder / "requirements.json"
        if not self.requirements or (stamp.exists() and json.loads(stamp.read_text()) == list(self.requirements)):
            return
        uv = shutil.which("uv")
        if uv:
            subprocess.run([uv, "venv", "--quiet", "--clear", str(self.folder)], check=True)
            install = [uv, "pip", "install", "--quiet", "--python", str(self.python)]
        else:
            venv.create(self.folder, clear=True, with_pip=True)
            install = [str(self.python), "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, *self.requirements], check=True)
        stamp.write_text(json.dumps(list(self.requirements)))

    def versions(self) -> dict[str, str]:
        """Distribution to version of all that is installed in the environment."""
        return dict(sorted(self._installed.items()))

    @cached_property
    def _installed(self) -> dict[str, str]:
        code = "import json,importlib.metadata as m;print(json.dumps({d.name: d.version for d in m.distributions()}))"
        done = subprocess.run([str(self.python), "-c", code], check=True, capture_output=True, text=True)
        return dict(json.loads(done.stdout))


def frameworks() -> dict[str, Framework]:
    """All sets by name, in the order of the file."""
    table = tomllib.loads((RIG / "frameworks.toml").read_text())
    return {
        name: Framework(
            name,
            entry["script"],
            tuple(entry.get("requirements", ())),
            entry.get("env", {}),
            tuple(entry.get("skip", ())),
            entry.get("venv", ""),
        )
        for name, entry in table.items()
    }
