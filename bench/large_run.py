"""A large stored run against the least that could be done: decode, tokenise, score, insert.

Prints the CPU seconds of a sketch that does nothing else, of `deemster run` over the same files, and of `show` and
reports of the stored run, each as a whole command, best of three. The ratio is without the start of each process. The
sketch keeps no details of marks, checks nothing and can resume nothing. The promise is five times the sketch.

Usage: .venv/bin/python bench/large_run.py [samples]
"""

import compileall
import json
import os
import random
import sys
import tempfile
from pathlib import Path

from measured_rows import OURS, record_row, run_measured

import deemster

PROMISE = 5
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
SUITE = "dataset: golden.jsonl\ntarget: {outputs: outputs.jsonl}\nmetrics: [exact-match, rouge-l]\n"
SKETCH = """
import re, sqlite3, sys
import msgspec
from rapidfuzz.distance import LCSseq

class Sample(msgspec.Struct):
    id: str
    input: dict
    expected_output: str
    metadata: dict

class Output(msgspec.Struct):
    id: str
    output: str

def rouge_l(output, expected):
    first, second = output.lower().split(), expected.lower().split()
    common = LCSseq.similarity(first, second)
    return 2 * common / (len(first) + len(second)) if common else 0.0

def rows():
    for position, sample in enumerate(samples):
        output = outputs[sample.id]
        scores = [float(output.strip() == sample.expected_output.strip()), rouge_l(output, sample.expected_output)]
        yield position, sample.id, encode(sample), encode([output, scores])

if len(sys.argv) > 1:
    samples = msgspec.json.Decoder(Sample).decode_lines(open("golden.jsonl", "rb").read())
    lines = msgspec.json.Decoder(Output).decode_lines(open("outputs.jsonl", "rb").read())
    outputs = {line.id: line.output for line in lines}
    encode = msgspec.json.Encoder().encode
    database = sqlite3.connect("sketch.db")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE rows (position INTEGER PRIMARY KEY, id TEXT, sample BLOB, scored BLOB)")
    database.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", rows())
    database.commit()
"""


def write_files(folder, samples):
    """A dataset of about 300 bytes a sample, whose ids are in no order, and its answers; nine in ten are right."""
    folder.mkdir()
    (folder / "suite.yml").write_text(SUITE)
    drawn = random.Random(7)
    with (folder / "golden.jsonl").open("w") as golden, (folder / "outputs.jsonl").open("w") as outputs:
        for number in range(samples):
            expected = " ".join(drawn.choices(WORDS, k=12))
            question = f"what {' '.join(drawn.choices(WORDS, k=24))}"
            sample = {"id": f"s{number}", "input": {"q": question}, "expected_output": expected}
            answer = expected if drawn.random() < 0.9 else expected.rpartition(" ")[0]
            golden.write(json.dumps({**sample, "metadata": {"tags": [drawn.choice(WORDS)]}}) + "\n")
            outputs.write(json.dumps({"id": sample["id"], "output": answer}) + "\n")


def least(folder, *command, fresh=()):
    """The least CPU seconds of three times, and the peak of the last; files that must not be there are removed."""
    os.chdir(folder)
    seconds = []
    for _ in range(3):
        for name in fresh:
            Path(name).unlink(missing_ok=True)
        finished = run_measured(*command)
        seconds.append(finished.cpu_s)
    return min(seconds), finished.peak_mb


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compileall.compile_dir(Path(deemster.__file__).parent, quiet=2)
    program = [sys.executable, "-m", "deemster"]
    run = [*program, "run", "suite.yml", "--quiet", "--store"]

    with tempfile.TemporaryDirectory(prefix="deemster-large-") as name:
        one, large = Path(name) / "one", Path(name) / "large"
        write_files(one, 1)
        write_files(large, count)
        (large / "sketch.py").write_text(SKETCH)

        sketch = [sys.executable, "sketch.py"]
        start, _ = least(one, *run, "start.db", fresh=["start.db"])
        sketch_start, _ = least(large, *sketch)
        drawn, _ = least(large, *sketch, "all", fresh=["sketch.db"])
        stored, peak = least(large, *run, "runs.db", fresh=["runs.db"])
        ratio = (stored - start) / (drawn - sketch_start)
        print(f"{count:,} saved outputs, exact-match and rouge-l, stored: {stored:.2f} CPU s, peak {peak:.0f} MB")
        print(f"sketch {drawn:.2f} CPU s; without the start of each {ratio:.1f} times (promise {PROMISE})", flush=True)
        work = f"{count:,} saved outputs from files, two metrics, stored, the whole command"
        record_row(work, OURS, stored, "s", version=deemster.__version__, samples=count, peak_mb=peak)
        record_row(work, "a sketch", drawn, "s", samples=count)

        show = [*program, "show", "latest", "--store", "runs.db"]
        for title, command in {
            "show RUN SAMPLE": [*program, "show", "latest", f"s{count // 2}", "--store", "runs.db"],
            "show RUN": show,
            "show RUN --to report.html": [*show, "--to", "report.html"],
            "show RUN --to report.json": [*show, "--to", "report.json"],
        }.items():
            seconds, peak = least(large, *command)
            print(f"{title:<28} {seconds:6.2f} CPU s  peak {peak:.0f} MB", flush=True)
            work = f"`{title}`, of a run of {count:,}"
            record_row(work, OURS, seconds, "s", version=deemster.__version__, samples=count, peak_mb=peak)
        size = (large / "report.json").stat().st_size
        print(f"JSON report {size / count:,.0f} bytes a sample")
        os.chdir("/")


if __name__ == "__main__":
    main()
