"""Votes files of any size for the benchmarks of alignment, made from a seed.

Ten criteria: six binary, three ordinal of five levels, one nominal of four; three judges of different skill, one in
fifty cells an abstention, one in two hundred a failed call, one item in five hundred errored.
"""

import json
import sys
from pathlib import Path

import numpy as np

KINDS = ("binary",) * 6 + ("ordinal",) * 3 + ("nominal",)
WEIGHTS = (10, 8, 6, -4, 4, -2, 8, 6, 4, 2)
LEVELS = {"binary": ("MET", "UNMET"), "ordinal": ("1", "2", "3", "4", "5"), "nominal": ("red", "green", "blue", "grey")}
SKILLS = {"a": 0.85, "b": 0.75, "c": 0.65}
ABSTAINED, FAILED, ERRORED = 0.02, 0.005, 0.002


def rubric():
    criteria = []
    for number, (kind, weight) in enumerate(zip(KINDS, WEIGHTS, strict=True)):
        made = {"name": f"{kind} {number}", "requirement": f"Requirement {number}.", "weight": weight}
        if kind != "binary":
            labels = LEVELS[kind]
            made["options"] = [
                {"label": label, "value": place / (len(labels) - 1)} for place, label in enumerate(labels)
            ]
            made["scale_type"] = kind
        criteria.append(made)
    return {"name": "bench", "criteria": criteria}


def cells(rng, truth, labels, skill):
    """The verdicts of one judge on one criterion, item by item."""
    said = np.where(rng.random(len(truth)) < skill, truth, rng.integers(0, len(labels), len(truth)))
    fate = rng.random(len(truth))
    return [
        {"failure": "infrastructure"}
        if odds < FAILED
        else "CANNOT_ASSESS"
        if odds < FAILED + ABSTAINED
        else labels[one]
        for one, odds in zip(said.tolist(), fate.tolist(), strict=True)
    ]


def votes_value(items, seed=7):
    """A votes file with a number of items, as a plain value."""
    rng = np.random.default_rng(seed)
    truths, votes = [], {judge: [] for judge in SKILLS}
    for kind in KINDS:
        labels = LEVELS[kind]
        truth = rng.integers(0, len(labels), items)
        truths.append([labels[one] for one in truth.tolist()])
        for judge, skill in SKILLS.items():
            votes[judge].append(cells(rng, truth, labels, skill))
    by_item = {judge: list(map(list, zip(*columns, strict=True))) for judge, columns in votes.items()}
    errored = rng.random(items) < ERRORED
    made = []
    for number, truth in enumerate(zip(*truths, strict=True)):
        item = {"id": f"item-{number:06d}", "ground_truth": list(truth)}
        if errored[number]:
            item["error"] = "timed out"
        else:
            item["votes"] = {judge: rows[number] for judge, rows in by_item.items()}
        made.append(item)
    return {
        "schema_version": "deemster.votes.v1",
        "name": f"bench-{items}",
        "rubric": rubric(),
        "judges": [{"id": judge} for judge in SKILLS],
        "items": made,
    }


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(votes_value(int(sys.argv[1]))))
