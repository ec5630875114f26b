"""Votes files made from a seed, with everything that autorubric supports too.

Weights are integers and values are quarters, so that both sides compute the very same scores and tie where they tie.
Every criterion of an item has a vote, and truth abstains from a multi-choice criterion only if its author gave an NA
option: autorubric can say neither otherwise.
"""

from __future__ import annotations

from random import Random

BINARY = ("majority", "weighted", "unanimous", "any")
ORDINAL = ("mean", "median", "weighted_mean", "mode", "min", "max")
NOMINAL = ("mode", "weighted_mode", "unanimous")
FAILURES = ("infrastructure", "parse", "unknown")


def criterion(rng: Random, number: int, kind: str) -> dict:
    made = {"requirement": f"Requirement {number} of {kind}.", "weight": rng.choice((-8, -3, -1, 1, 2, 4, 10))}
    if rng.random() < 0.8:
        made["name"] = f"{kind}-{number}"
    if kind == "binary":
        return made
    count = rng.choice((2, 3, 5)) if kind == "ordinal" else rng.randint(2, 4)
    values = [place / (count - 1) for place in range(count)]
    if kind == "nominal":
        values = [rng.choice((0.0, 0.25, 0.5, 1.0)) for _ in range(count)]
    elif rng.random() < 0.3:
        values.reverse()
    options = [{"label": f"L{place}", "value": value} for place, value in enumerate(values)]
    if rng.random() < 0.5:
        options.insert(rng.choice((0, 1, count, count)), {"label": "n/a", "value": 0, "na": True})
    if rng.random() < 0.3:
        made["aggregation"] = rng.choice(ORDINAL if kind == "ordinal" else NOMINAL)
    return made | {"options": options, "scale_type": kind}


def labels(entry: dict) -> list[str]:
    """The labels of a criterion without abstentions."""
    return [o["label"] for o in entry["options"] if not o.get("na")] if "options" in entry else ["MET", "UNMET"]


def abstains(entry: dict) -> bool:
    """Whether truth can abstain."""
    return "options" not in entry or any(o.get("na") for o in entry["options"])


def said(rng: Random, entry: dict, true: str, abstaining: float) -> str:
    if rng.random() < abstaining:
        return "CANNOT_ASSESS"
    return true if true != "CANNOT_ASSESS" and rng.random() < 0.6 else rng.choice(labels(entry))


def item(rng: Random, name: str, criteria: list[dict], judges: list[str], odds: dict[str, float]) -> dict:
    truth = [
        "CANNOT_ASSESS" if abstains(entry) and rng.random() < odds["abstaining"] else rng.choice(labels(entry))
        for entry in criteria
    ]
    made: dict = {"id": name}
    if rng.random() >= odds["unlabelled"]:
        made["ground_truth"] = truth
    if rng.random() < odds["errored"]:
        return made | {"error": "timed out"}
    cells: dict[str, list] = {judge: [] for judge in judges}
    for entry, true in zip(criteria, truth, strict=True):
        sure = rng.choice(judges)
        for judge in judges:
            if judge != sure and rng.random() < odds["silent"]:
                cells[judge].append(None)
            elif rng.random() < odds["failed"]:
                cells[judge].append({"failure": rng.choice(FAILURES)})
            else:
                cells[judge].append(said(rng, entry, true, odds["abstaining"]))
    return made | {"votes": {judge: column for judge, column in cells.items() if any(cell for cell in column)}}


def votes_file(seed: int, *, kinds: str | None = None, rubrics: int = 1) -> dict:
    """A votes file; `kinds` such as "bon" fixes the kinds of criteria, several `rubrics` make a mixed file."""
    rng = Random(seed)
    names = {"b": "binary", "o": "ordinal", "n": "nominal"}
    sets = [
        [
            criterion(rng, 10 * place + number, names[letter])
            for number, letter in enumerate(kinds or rng.choices("bbon", k=rng.randint(1, 4)))
        ]
        for place in range(rubrics)
    ]
    judges = ["a", "b", "c"][: rng.randint(1, 3)]
    odds = {
        "abstaining": rng.choice((0.0, 0.1, 0.3)),
        "failed": rng.choice((0.0, 0.0, 0.1, 0.4)),
        "silent": rng.choice((0.0, 0.0, 0.2)),
        "errored": rng.choice((0.0, 0.15)),
        "unlabelled": rng.choice((0.0, 0.15)),
    }
    items = []
    for number in range(rng.choice((1, 3, 6, 12, 25, 25))):
        place = rng.randrange(rubrics)
        made = item(rng, f"item-{number:02d}", sets[place], judges, odds)
        items.append(made if rubrics == 1 else made | {"rubric": f"r{place}"})
    held = {"rubric": {"criteria": sets[0]}}
    if rubrics > 1:
        held = {"rubrics": {f"r{place}": {"criteria": criteria} for place, criteria in enumerate(sets)}}
    return held | {
        "schema_version": "deemster.votes.v1",
        "judges": [{"id": judge, "weight": rng.choice((0.5, 1.0, 1.0, 2.0, 4.0))} for judge in judges],
        "grading": {
            "aggregation": rng.choice(BINARY),
            "ordinal_aggregation": rng.choice(ORDINAL),
            "nominal_aggregation": rng.choice(NOMINAL),
            "abstention": rng.choice(("skip", "skip", "zero", "partial", "fail")),
            "partial_credit": rng.choice((0.25, 0.5)),
            "normalize": rng.random() < 0.8,
        },
        "items": items,
    }
