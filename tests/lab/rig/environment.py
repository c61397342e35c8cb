"""The sets of ``frameworks.toml`` and ``hosted.toml``, and their environments."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
import venv
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.rig import node
from tests.lab.rig.scenarios import SCENARIOS

RIG = Path(__file__).resolve().parent
VENVS = RIG / "venvs"
_LIST = "import json,importlib.metadata as m;print(json.dumps({d.name: d.version for d in m.distributions()}))"


@dataclass(frozen=True)
class Framework:
    """One set.

    ``requirements``: pip's or npm's. ``env``: extra variables. ``skip``: scenarios. ``majors``: maximum releases.
    ``own``: varying facts. ``keep``: spans kept of a ``packed`` set.
    """

    name: str
    script: str
    requirements: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    skip: tuple[str, ...] = ()
    majors: dict[str, str] = field(default_factory=dict)
    own: tuple[str, ...] = ()
    packed: bool = False
    keep: str = ""

    @property
    def folder(self) -> Path:
        return VENVS / self.name

    @property
    def python(self) -> Path:
        return self.folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")

    @property
    def on_node(self) -> bool:
        """Return whether the agent runs on Node."""
        return self.script.endswith(".mjs")

    def command(self) -> list[str]:
        script = RIG / "agents" / self.script
        return node.command(self.folder, script) if self.on_node else [str(self.python), str(script)]

    def install(self) -> None:
        """Create the environment if missing or changed."""
        stamp = self.folder / "requirements.json"
        if stamp.exists() and json.loads(stamp.read_text()) == list(self.requirements):
            return
        if self.on_node:
            node.install(self.folder, self.requirements)
        else:
            self._install_python()
        stamp.write_text(json.dumps(list(self.requirements)))

    def _install_python(self) -> None:
        uv = shutil.which("uv")
        if uv:
            subprocess.run([uv, "venv", "--quiet", "--clear", str(self.folder)], check=True)
            install = [uv, "pip", "install", "--quiet", "--python", str(self.python)]
        else:
            venv.create(self.folder, clear=True, with_pip=True)
            install = [str(self.python), "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, *self.requirements], check=True)

    def versions(self) -> dict[str, str]:
        if self.on_node:
            return node.versions(self.folder)
        done = subprocess.run([str(self.python), "-c", _LIST], check=True, capture_output=True, text=True)
        return dict(sorted(json.loads(done.stdout).items()))


def frameworks(file: str = "frameworks.toml") -> dict[str, Framework]:
    """Return fully captured sets by name, in file order."""
    return _sets(file, packed=False)


def emitters() -> dict[str, Framework]:
    """Return sets of ``emitters.toml`` by name, in file order."""
    return _sets("emitters.toml", packed=True)


def _sets(file: str, packed: bool) -> dict[str, Framework]:
    return {
        name: Framework(
            name,
            entry["script"],
            tuple(entry["requirements"]),
            entry.get("env", {}),
            tuple(entry.get("skip", SCENARIOS.keys() - entry.get("only", SCENARIOS))),
            entry.get("majors", {}),
            tuple(entry.get("own", ())),
            packed,
            entry.get("keep", ""),
        )
        for name, entry in tomllib.loads((RIG / file).read_text()).items()
    }
