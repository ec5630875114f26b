"""Which biases `deemster audit judge` flags, for judges that have exactly one planted bias each.

Usage: python3 bench/judge_biases.py [--samples N]

Printed: planted bias x flag, for the metrics llm-as-judge, pairwise and rubric (a choice of three options). Goal: every
planted bias is flagged by each metric that can show it, and nothing else is.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from deemster.audit.audit_judge import audit_judge
from deemster.audit.planted_outputs import expected_outputs
from deemster.datasets import Dataset
from deemster.engine.watchers import Watchers
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.judges.bias_probes import ORDER, PROBES

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "builders"))

from biased_judges import BIASES, biased_judge

SAMPLES = 16
# A judge chooses one of three options, which are shuffled for every text.
CHOICE = {
    "criteria": [
        {
            "name": "right",
            "requirement": "Is the answer right?",
            "options": [
                {"label": "wrong", "value": 0.0},
                {"label": "partly", "value": 0.5},
                {"label": "right", "value": 1.0},
            ],
        }
    ]
}


def dataset(count):
    rows = [
        {
            "id": f"room-{place}",
            "input": {"question": f"When does room {place} open, and how many people does it hold?"},
            "expected_output": f"Room {place} opens at {7 + place % 5} and holds {20 + place} people.",
        }
        for place in range(count)
    ]
    return Dataset(rows, name="rooms")


def audit(bias, samples, *, noise=0.05, seed=0):
    right = {sample.input["question"]: sample.expected_output for sample in samples}
    outputs = expected_outputs(samples)
    job = resolve_arguments(
        samples,
        outputs={name: output.text for name, output in outputs.items()},
        metrics=["llm-as-judge", "pairwise", {"rubric": {"rubric": CHOICE, "threshold": 0.5}}],
        models={"judge": biased_judge(bias, right, noise=noise)},
        seed=seed,
    )
    return asyncio.run(audit_judge(job, "judge", outputs, source="expected outputs", watchers=Watchers(print)))


def confusion_table(count=SAMPLES):
    """By planted bias (None for none) and probe, the metrics that are flagged."""
    samples = dataset(count)
    table = {}
    for bias in (None, *BIASES):
        found = audit(bias, samples)
        table[bias] = {
            probe: [metric for metric, probes in found.metrics.items() if probe in probes and probes[probe].is_flagged]
            for probe in (*PROBES, ORDER)
        }
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=SAMPLES)
    table = confusion_table(parser.parse_args().samples)
    probes = (*PROBES, ORDER)
    print(f"{'planted':<18}" + "".join(f"{probe[:16]:>18}" for probe in probes))
    for bias, row in table.items():
        cells = ("+".join(metric[:4] for metric in row[probe]) or "." for probe in probes)
        print(f"{bias or 'none':<18}" + "".join(f"{cell:>18}" for cell in cells))


if __name__ == "__main__":
    main()
