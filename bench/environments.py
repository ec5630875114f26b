"""An environment of its own for each peer, made on demand under .envs and kept.

Usage: python3 bench/environments.py [peer ...]     (all of them where none is named)
"""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent.parent / ".envs"
PEERS = {
    "pydantic-evals": ("pydantic-evals",),
    "deepeval": ("deepeval",),
    "inspect-ai": ("inspect-ai",),
}


def environment(peer):
    """The Python of a peer's environment.

    Raises:
        subprocess.CalledProcessError: It cannot be made: most likely there is no package index to install from.
    """
    folder = FOLDER / peer
    python = folder / "bin" / "python"
    # Written last, so that an installation that was broken off is begun again.
    done = folder / ".installed"
    wanted = " ".join(PEERS[peer])
    if not done.exists() or done.read_text() != wanted:
        print(f"installing {wanted} into {folder}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        subprocess.run([*pip, *PEERS[peer]], check=True, stderr=subprocess.DEVNULL)
        done.write_text(wanted)
    return python


def version(peer):
    """Which version of the peer its environment holds."""
    code = f"import importlib.metadata as m; print(m.version({peer!r}))"
    return subprocess.run([str(environment(peer)), "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def main():
    for peer in sys.argv[1:] or PEERS:
        print(f"{peer} {version(peer)}", flush=True)


if __name__ == "__main__":
    main()
