"""Creates a separate environment for each peer under .envs when it is needed.

Usage: python3 bench/environments.py [peer ...]     (default: every peer that pip installs)
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent.parent / ".envs"
PEERS = (
    *("pydantic-evals", "deepeval", "inspect-ai", "ranx", "autorubric", "irrcac", "crowd-kit", "openai", "litellm"),
    *("statgate", "evalstats", "trulens-core", "ragas"),
)
# What pip is asked for, where it is more than the name. The tests compare with this release of autorubric.
REQUIREMENTS = {
    "autorubric": ("autorubric==1.6.1",),
    # It fails on later releases of numpy and pandas.
    "irrcac": ("numpy<2.4", "pandas<3", "scipy"),
    # It imports a module that later releases of langchain-community do not have.
    "ragas": ("ragas", "langchain-community<0.4"),
    # The code of this folder, to know its size.
    "deemster": (str(FOLDER.parent),),
}
# Installed without what it depends on: it names one release of scipy, which Python 3.13 has no wheel of.
ALONE = {"irrcac": "irrCAC==0.4.4"}
# Some minutes and 720 packages, so only where it is asked for.
ASKED = ("promptfoo",)


def environment(peer):
    """The folder of a peer's environment.

    Raises:
        subprocess.CalledProcessError: It cannot be made: most likely there is no package index to install from.
    """
    folder = FOLDER / peer
    if not exists(peer):
        print(f"installing {peer} into {folder}", flush=True)
        if peer in ASKED:
            folder.mkdir(parents=True, exist_ok=True)
            command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), peer]
        else:
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            wanted = REQUIREMENTS.get(peer, (peer,))
            install = [str(python(peer)), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
            if peer in ALONE:
                subprocess.run([*install, "--no-deps", ALONE[peer]], check=True, stderr=subprocess.DEVNULL)
            command = [*install, *wanted]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        _mark(peer).touch()
    return folder


def exists(peer):
    """Whether a peer is installed completely."""
    return _mark(peer).exists()


def _mark(peer):
    return FOLDER / peer / ".installed"


def python(peer):
    return FOLDER / peer / "bin" / "python"


def version(peer):
    """Which version of the peer its environment holds."""
    folder = environment(peer)
    if peer in ASKED:
        return json.loads((folder / "node_modules" / peer / "package.json").read_text())["version"]
    code = f"import importlib.metadata as m; print(m.version({peer!r}))"
    return subprocess.run([python(peer), "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def main():
    for peer in sys.argv[1:] or PEERS:
        if peer not in (*PEERS, *ASKED):
            sys.exit(f"no peer is called {peer}; known: {', '.join((*PEERS, *ASKED))}")
        if peer in ASKED and not shutil.which("npm"):
            sys.exit(f"{peer} needs npm, and there is none")
        print(f"{peer} {version(peer)}", flush=True)


if __name__ == "__main__":
    main()
