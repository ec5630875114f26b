"""Four retrieval metrics of rankings in JSONL files, as whole commands: `deemster run` against a script of pytrec_eval.

Both start, read the same two files, and compute hit@10, recall@10, mrr and ndcg@10. The script prints four means and
checks nothing. deemster checks every row, makes a mark of every metric with its details, intervals and a report; once
without a store, and once stored. All means must be equal. Modules are compiled first, and the best of three counts.

Usage: .venv/bin/python bench/retrieval_files.py [queries] [depth]
"""

import compileall
import importlib.metadata
import json
import os
import sys
import tempfile
from pathlib import Path

from measured_rows import OURS, record_row, run_measured
from retrieval import data

import deemster as dm

REPEATS = 3
METRICS = ("retrieval-hit-at-k(k=10)", "retrieval-recall-at-k(k=10)", "retrieval-mrr", "retrieval-ndcg-at-k(k=10)")
PEER = """
import json
import pytrec_eval

def rows(name):
    with open(name, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)

qrel = {row["id"]: row["metadata"]["relevant"] for row in rows("golden.jsonl")}
run = {
    row["id"]: {name: float(-rank) for rank, name in enumerate(row["retrieved"])}
    for row in rows("outputs.jsonl")
}
names = ("success_10", "recall_10", "recip_rank", "ndcg_cut_10")
results = pytrec_eval.RelevanceEvaluator(qrel, {"success.10", "recall.10", "recip_rank", "ndcg_cut.10"}).evaluate(run)
print(json.dumps([sum(result[name] for result in results.values()) / len(results) for name in names]))
"""


def write_files(folder, queries, depth):
    """The files that both read."""
    with (folder / "golden.jsonl").open("w") as golden, (folder / "outputs.jsonl").open("w") as outputs:
        for number, (ranking, gains) in enumerate(zip(*data(queries, depth), strict=True)):
            sample = {"id": f"q{number}", "input": {}, "expected_output": None, "metadata": {"relevant": gains}}
            golden.write(json.dumps(sample) + "\n")
            outputs.write(json.dumps({"id": f"q{number}", "output": "", "retrieved": ranking}) + "\n")
    metrics = json.dumps(METRICS)
    (folder / "suite.yml").write_text(
        f"dataset: golden.jsonl\ntarget: {{outputs: outputs.jsonl}}\nmetrics: {metrics}\n"
    )
    (folder / "peer.py").write_text(PEER)


def least(*command):
    """The quickest of some times that a command is run, each without what the time before has left."""
    finished = []
    for _ in range(REPEATS):
        Path("runs.db").unlink(missing_ok=True)
        finished.append(run_measured(*command))
    return min(finished, key=lambda done: done.cpu_s)


def main(queries=10_000, depth=100):
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compileall.compile_dir(Path(dm.__file__).parent, quiet=2)
    run = [sys.executable, "-m", "deemster", "run", "suite.yml", "--quiet", "--store"]

    with tempfile.TemporaryDirectory(prefix="deemster-retrieval-") as name:
        write_files(Path(name), queries, depth)
        os.chdir(name)
        peer = least(sys.executable, "peer.py")
        plain = least(*run, "none")
        stored = least(*run, "runs.db")
        run_measured(*run[:3], "show", "latest", "--store", "runs.db", "--to", "report.json")
        report = json.loads(Path("report.json").read_text())
        os.chdir("/")

    means = [report["metrics"][name]["mean"] for name in report["metric_order"]]
    if max(abs(one - other) for one, other in zip(means, json.loads(peer.printed), strict=True)) > 1e-9:
        sys.exit(f"the means differ: {means}, pytrec_eval {peer.printed}")

    for words, mine in (("not stored", plain), ("stored", stored)):
        work = f"{queries:,} rankings of {depth} ids from files, the whole command, {words}"
        print(f"{work}: deemster {mine.cpu_s:.2f} CPU s, pytrec_eval {peer.cpu_s:.2f}", flush=True)
        for tool, release, done in (
            (OURS, dm.__version__, mine),
            ("pytrec_eval", importlib.metadata.version("pytrec-eval-terrier"), peer),
        ):
            more = {"samples": queries, "cpu_s": done.cpu_s, "peak_mb": done.peak_mb}
            record_row(work, tool, done.cpu_s, "s", version=release, **more)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
