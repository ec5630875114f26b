"""Comparing two stored runs against TruLens' paired comparison: CPU seconds of both, their ratio, and peak memory.

Both compare the same scores of five metrics. TruLens' `compare_runs` gets its records from memory; deemster reads its
runs from the store. Each side runs in a process of its own; imports are left out on both, and the first call and
the best of three more are rows of their own. The mean difference of every
metric must be equal, or the script stops. With --million, two runs of a million samples are compared: the promise is
10 s and 400 MB.

Usage: .venv/bin/python bench/comparison.py [samples] [--million]     (default: 10,000 samples)
"""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import environments
from measured_rows import OURS, record_row, run_measured

import deemster as dm

HERE = Path(__file__).parent
REPEATS = 3
GOAL, PROMISE_S, PROMISE_MB = 100, 10, 400
METRICS = ("exact-match", "rouge-l", "token-f1", "contains", "levenshtein")
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


def written(folder, count):
    """A dataset and the outputs of two versions of an application; the second is a little worse."""
    draw = random.Random(7)
    files = {name: (folder / f"{name}.jsonl").open("w") for name in ("golden", "before", "after")}
    for number in range(count):
        expected = [draw.choice(WORDS) for _ in range(8)]
        before = [word if draw.random() < 0.95 else draw.choice(WORDS) for word in expected]
        after = before if draw.random() < 0.7 else [w if draw.random() < 0.94 else draw.choice(WORDS) for w in expected]
        name, tags = f"s{number:07d}", {"tags": [WORDS[number % 4]]}
        sample = {"id": name, "input": {"question": f"What is {number}?"}, "expected_output": " ".join(expected)}
        files["golden"].write(json.dumps(sample | {"metadata": tags}) + "\n")
        for label, said in (("before", before), ("after", after)):
            usage = {"prompt_tokens": 90 + number % 7, "cost_usd": "0.0004", "latency_ms": 300.0 + draw.random()}
            files[label].write(json.dumps({"id": name, "output": " ".join(said), "usage": usage}) + "\n")
    for file in files.values():
        file.close()
    for label in ("before", "after"):
        suite = f"name: bench\ndataset: golden.jsonl\ntarget: {{ outputs: {label}.jsonl }}\nmetrics: {list(METRICS)}\n"
        (folder / f"{label}.yml").write_text(suite.replace("'", ""))
        command = [Path(sys.executable).parent / "deemster", "run", folder / f"{label}.yml", "--quiet"]
        subprocess.run(
            [*command, "--name", label, "--store", folder / "runs.db"], check=True, stderr=subprocess.DEVNULL
        )


def ours(store):
    """Runs in a separate process: prints CPU seconds and the mean difference of each metric."""
    from deemster.comparison.compare_runs import compare

    times = []
    for _ in range(1 + REPEATS):
        start = spent()
        found = compare("before", "after", store=store)
        times.append(spent() - start)
    means = {name: metric.mean.difference for name, metric in found.metrics.items()}
    print(json.dumps({"first": times[0], "cpu": min(times[1:]), "means": means}))


def scores(store):
    """The scores of both runs as TruLens wants them: a row for each record."""
    from deemster.store import open_store

    with open_store(store) as opened:
        return {
            label: [
                {
                    "record_id": execution.id,
                    "input": execution.id,
                    **{name: mark.score for name, mark in zip(METRICS, execution.marks, strict=True)},
                }
                for execution in opened.executions(opened.run(label).id)
            ]
            for label in ("before", "after")
        }


def spent():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def answer(*command):
    done = run_measured(*command)
    return json.loads(done.printed) | {"peak_mb": done.peak_mb}


def race(count, folder):
    written(folder, count)
    mine = answer(sys.executable, __file__, "--ours", folder / "runs.db")
    (folder / "scores.json").write_text(json.dumps(scores(folder / "runs.db")))
    environments.environment("trulens-core")
    peer = answer(environments.python("trulens-core"), HERE / "peers" / "comparison_trulens.py", folder / "scores.json")
    for name in METRICS:
        if abs(mine["means"][name] - peer["means"][name]) > 1e-9:
            sys.exit(f"{name}: ours {mine['means'][name]}, TruLens {peer['means'][name]}")
    release = environments.version("trulens-core")
    for tool, version, told in ((OURS, dm.__version__, mine), ("TruLens", release, peer)):
        work = f"paired comparison of two runs, {len(METRICS)} metrics"
        first_ms = told["first"] * 1e3
        record_row(f"{work}, first call in a process", tool, first_ms, "ms", version=version, samples=count)
        record_row(
            work,
            tool,
            told["cpu"] * 1e3,
            "ms",
            version=version,
            samples=count,
            goal=None if tool == OURS else GOAL,
            cpu_s=told["cpu"],
            peak_mb=told["peak_mb"],
        )
    ratio = peer["cpu"] / mine["cpu"]
    print(
        f"{count:,} samples x {len(METRICS)} metrics: TruLens {peer['cpu']:.2f} CPU s, {peer['peak_mb']:.0f} MB; "
        f"ours {mine['cpu']:.3f} CPU s, {mine['peak_mb']:.0f} MB; {ratio:.0f} times (goal {GOAL}); "
        f"first call {peer['first'] / mine['first']:.1f} times: {peer['first']:.2f} and {mine['first']:.3f} CPU s",
    )


def million(folder):
    written(folder, 1_000_000)
    command = [Path(sys.executable).parent / "deemster", "compare", "before", "after", "--store", folder / "runs.db"]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    cpu = used.ru_utime + used.ru_stime
    print(
        f"1,000,000 samples x {len(METRICS)} metrics through the command line: {cpu:.1f} CPU s, "
        f"{wall:.1f} s (promise {PROMISE_S}), peak {used.ru_maxrss / 1024:.0f} MB (promise {PROMISE_MB})",
    )


def main():
    if sys.argv[1:2] == ["--ours"]:
        ours(sys.argv[2])
        return
    counts = [int(argument) for argument in sys.argv[1:] if argument != "--million"]
    with tempfile.TemporaryDirectory(prefix="deemster-comparison-") as name:
        race(counts[0] if counts else 10_000, Path(name))
    if "--million" in sys.argv:
        with tempfile.TemporaryDirectory(prefix="deemster-comparison-") as name:
            million(Path(name))


if __name__ == "__main__":
    main()
