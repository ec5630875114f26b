"""Run deemster and its peers on the same work, one part after the other, and write down what they needed.

Each part is a script in bench/ that measures one thing, prints it, and hands over its rows (measured_rows.py). Each
peer has an environment of its own (environments.py), which is made when it is missing. A part or a peer that fails is a
row that says why, and the others go on.

The results go to bench/peers/results.json, and from there to docs/benchmarks.md and its pictures. With --quick, sizes
are small, the numbers say nothing, and everything goes to build/peers.

Usage: .venv/bin/python bench/peers [--quick] [PART ...]
       (all parts take about ten minutes; where parts are named, the rows of the others stay)
"""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import environments
from measured_rows import OURS, ROWS

from website.benchmark_page import RESULTS, benchmark_page
from website.pictures import benchmark_pictures

ROOT = Path(__file__).resolve().parents[2]
BENCH, DOCS = ROOT / "bench", ROOT / "docs"
# The script of each part, with its arguments in full and with --quick.
PARTS = {
    "runner": ("end_to_end.py", "10000 1000", "500 50"),
    "live target": ("live_target.py", "2000 10000", "100 300"),
    "resume": ("resume.py", "200 3", "40 1"),
    "judge calls": ("judge_calls.py", "10000 1000", "200 50"),
    "retrieval": ("retrieval.py", "30000 100", "300 20"),
    "retrieval from files": ("retrieval_files.py", "10000 100", "300 20"),
    "large run": ("large_run.py", "100000", "1000"),
    "rouge": ("rouge.py", "", "--quick"),
    "alignment": ("alignment.py", "", "--quick"),
    "comparison": ("comparison.py", "10000", "200"),
    "gate errors": ("gate_errors.py", "--errors", "--quick"),
    "footprint": ("footprint.py", "5", "1"),
}
PEERS = {
    "runner": ("pydantic-evals", "deepeval", "inspect-ai", "ragas", "promptfoo"),
    "live target": ("pydantic-evals", "inspect-ai"),
    "judge calls": ("openai", "litellm"),
}
LIMIT_S = 1200


def run_part(name, *, quick):
    """Run a part: its command, how long it took, and its rows."""
    script, full, small = PARTS[name]
    arguments = (small if quick else full).split()
    command = " ".join(["bench/" + script, *arguments])
    print(f"\n{name}: {command}", flush=True)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="deemster-peers-") as folder:
        path = Path(folder) / "rows.jsonl"
        path.touch()
        fault = run_script([sys.executable, str(BENCH / script), *arguments], path, Path(folder) / "errors.txt")
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if fault:
        print(f"{name}: {fault}", flush=True)
        rows.append({"work": name, "tool": "", "value": None, "unit": "", "note": f"could not be measured: {fault}"})
    return {"part": name, "command": command, "seconds": round(time.perf_counter() - start), "rows": compared(rows)}


def run_script(command, path, errors):
    """What went wrong in a script that hands its rows over to a file, or nothing."""
    with errors.open("w") as file:
        # In a group of its own, so that the processes it started end with it.
        process = subprocess.Popen(command, stderr=file, env=os.environ | {ROWS: str(path)}, start_new_session=True)
        try:
            process.wait(LIMIT_S)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as stopped:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(stopped, KeyboardInterrupt):
                raise
            return f"it took longer than {LIMIT_S} s"
    if not process.returncode:
        return ""
    said = [line for line in errors.read_text(errors="replace").splitlines() if line.strip()]
    return said[-1].strip() if said else f"it ended with {process.returncode}"


def compared(rows):
    """The rows with short numbers, and with how many times less deemster needs than each other tool."""
    ours = {row["work"]: row["value"] for row in rows if row["tool"] == OURS}
    for row in rows:
        for name in ("value", "cpu_s", "peak_mb"):
            if row.get(name) is not None:
                row[name] = float(f"{row[name]:.4g}")
        # A page for everybody names no folder of this machine.
        row["note"] = row.get("note", "").replace(f"{ROOT}/", "")
        mine = ours.get(row["work"])
        row["ratio"] = None
        if row["tool"] != OURS and row["value"] is not None and mine:
            row["ratio"] = float(f"{row['value'] / mine:.3g}")
    return rows


def machine():
    """What the numbers were measured on."""
    said = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    names = [line.partition(":")[2].strip() for line in said.splitlines() if line.startswith("model name")]
    node = shutil.which("node")
    return {
        "cpu": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": platform.system(),
        "python": platform.python_version(),
        "node": subprocess.run([node, "--version"], check=True, capture_output=True, text=True).stdout.strip()
        if node
        else None,
    }


def install_peers(wanted):
    """Make the environments of these parts first; a peer without one is left out or a row."""
    for peer in sorted({peer for name in wanted for peer in PEERS.get(name, ())}):
        try:
            environments.environment(peer)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{peer} cannot be installed: {error}", flush=True)


def write(results, folder):
    """Write the results, the page and its pictures: into the repository, or into a folder."""
    paths = {RESULTS: json.dumps(results, indent=1, ensure_ascii=False) + "\n"}
    paths[DOCS / "benchmarks.md"] = benchmark_page(results)
    paths |= {DOCS / "pictures" / name: text for name, text in benchmark_pictures(results).items()}
    for path, text in paths.items():
        place = folder / path.name if folder else path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


def main():
    quick = "--quick" in sys.argv[1:]
    wanted = [word for word in sys.argv[1:] if word != "--quick"] or list(PARTS)
    if unknown := [word for word in wanted if word not in PARTS]:
        sys.exit(f"no part is called {unknown[0]}; known: {', '.join(PARTS)}")
    folder = ROOT / "build" / "peers" if quick else None
    path = folder / RESULTS.name if folder else RESULTS
    known = json.loads(path.read_text(encoding="utf-8"))["parts"] if path.exists() else []
    parts = {part["part"]: part for part in known}
    install_peers(wanted)
    loads, start = [os.getloadavg()[0]], time.perf_counter()
    for name in wanted:
        parts[name] = run_part(name, quick=quick)
        loads.append(os.getloadavg()[0])
        results = {
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "is_quick": quick,
            "machine": machine() | {"load": [round(min(loads), 1), round(max(loads), 1)]},
            "seconds": sum(part["seconds"] for part in parts.values()),
            "parts": [parts[known] for known in PARTS if known in parts],
        }
        # After every part, so that a run that is interrupted keeps what it has.
        write(results, folder)
    print(f"\n{time.perf_counter() - start:.0f} s; the results are in {path.relative_to(ROOT)} and in benchmarks.md")


if __name__ == "__main__":
    main()
