"""How fast a dataset of 10,000 samples loads from YAML and from JSONL, against PyYAML's own C loader in the same run.

Run: .venv/bin/python bench/yaml_loading.py [samples]
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from deemster.datasets import Dataset


def golden(count: int) -> str:
    head = "schema_version: deemster.dataset.v1\nname: support.refunds\nrepetitions: 1\nsamples:\n"
    rows = (
        f"  - id: sample-{i:05d}\n"
        f'    input: {{ question: "How long do I have to return item {i}?", lang: en }}\n'
        f'    expected_output: "{i % 60} days after delivery, unless the seal is broken."\n'
        f"    metadata: {{ tags: [policy, refunds], difficulty: {i % 5}, reviewed: 2024-03-0{i % 9 + 1} }}\n"
        for i in range(count)
    )
    return head + "".join(rows)


def cpu(act: Callable[[], object], rounds: int = 3) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        act()
        best = min(best, time.process_time() - start)
    return best


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        path, lines = Path(folder, "golden.yml"), Path(folder, "golden.jsonl")
        text = golden(count)
        path.write_text(text, encoding="utf-8")
        Dataset.load(path).save(lines)
        ours = cpu(lambda: Dataset.load(path))
        jsonl = cpu(lambda: Dataset.load(lines))
        peer = cpu(lambda: yaml.load(text, Loader=yaml.CSafeLoader))
    print(f"samples                          {count:>10,}   {len(text):,} characters")
    print(f"yaml.load(Loader=CSafeLoader)    {peer:>10.3f} s CPU")
    print(f"Dataset.load, YAML               {ours:>10.3f} s CPU   {peer / ours:.1f} times faster")
    print(f"Dataset.load, JSONL              {jsonl:>10.3f} s CPU   {peer / jsonl:.1f} times faster")
    print(f"peak RSS                         {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:>10.0f} MB")


if __name__ == "__main__":
    main()
