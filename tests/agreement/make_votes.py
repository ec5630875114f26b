"""Votes files for tests, and the same statistics written as plain loops."""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations

from hypothesis import strategies as st

from deemster.agreement._labelled_votes import read_labelled_votes
from deemster.agreement._verdict_classes import AbstentionModes
from deemster.datasets import Votes

FACTS = {"name": "facts", "weight": 10, "requirement": "Every claim is supported."}
PADDING = {"name": "padding", "weight": -4, "requirement": "It repeats itself."}
DEPTH = {
    "name": "depth",
    "weight": 6,
    "requirement": "How deep is it?",
    "scale_type": "ordinal",
    "options": [{"label": "good", "value": 1}, {"label": "fair", "value": 0.5}, {"label": "poor", "value": 0}],
}
FLAW = {
    "name": "flaw",
    "weight": -2,
    "requirement": "How bad is the worst flaw?",
    "scale_type": "ordinal",
    "options": [{"label": "none", "value": 0}, {"label": "n-a", "na": True}, {"label": "grave", "value": 1}],
}
TONE = {
    "name": "tone",
    "weight": 2,
    "requirement": "Which tone?",
    "scale_type": "nominal",
    "options": [{"label": "curt", "value": 0.2}, {"label": "warm", "value": 1}, {"label": "cold", "value": 0}],
}
CRITERIA = (FACTS, PADDING, DEPTH, FLAW, TONE)
JUDGES = ("a", "b", "c")
PEOPLE = ("ann", "bob", "cy")
MODES = [
    AbstentionModes(),
    AbstentionModes("as_unmet", "as_unmet"),
    AbstentionModes("as_category", "exclude"),
    AbstentionModes("exclude", "as_unmet"),
]


def votes_value(items, criteria=CRITERIA, judges=JUDGES, **more):
    """The map of a votes file."""
    return {
        "schema_version": "deemster.votes.v1",
        "rubric": {"criteria": list(criteria)},
        "judges": [{"id": judge} for judge in judges],
        "items": list(items),
        **more,
    }


def graded(name, truth, **votes):
    """An item with its truth and the votes of its judges."""
    return {"id": name, "ground_truth": truth, "votes": votes}


def labelled_votes(value, modes=None, **more):
    """The labelled votes of a votes file."""
    return read_labelled_votes(Votes.parse(value), None, modes=modes or AbstentionModes(), **more)


def labels_of(criterion):
    """The labels that count, lowest first on a scale, MET first where there are no options."""
    options = [option for option in criterion.get("options", []) if not option.get("na")]
    if not options:
        return ["MET", "UNMET"]
    if criterion["scale_type"] == "ordinal":
        options = sorted(options, key=lambda option: option["value"])
    return [option["label"] for option in options]


def abstains(criterion, entry):
    return entry == "CANNOT_ASSESS" or entry in {o["label"] for o in criterion.get("options", []) if o.get("na")}


def seen(criterion, entry, modes):
    """How an entry counts under the modes; None if it is left out."""
    if entry is None or isinstance(entry, dict):
        return None
    if not abstains(criterion, entry):
        return entry
    binary = "options" not in criterion
    mode = modes.cannot_assess if binary else modes.na_mode
    if mode == "exclude":
        return None
    if mode == "as_category":
        return "abstention"
    if binary:
        return "UNMET"
    scored = [option for option in criterion["options"] if not option.get("na")]
    sign = 1 if criterion["weight"] >= 0 else -1
    return min(scored, key=lambda option: sign * option["value"])["label"]


def agreed(criterion, entries):
    """The consensus of people, by the words of the specification."""
    given = [entry for entry in entries if entry is not None]
    if not given:
        return None
    if criterion.get("scale_type") == "ordinal":
        away = [entry for entry in given if abstains(criterion, entry)]
        places = sorted(labels_of(criterion).index(entry) for entry in given if not abstains(criterion, entry))
        if len(away) == len(places):
            return None
        if len(away) < len(places):
            low, high = places[(len(places) - 1) // 2], places[len(places) // 2]
            return labels_of(criterion)[low] if low == high else None
        given = ["CANNOT_ASSESS" if entry == "n-a" else entry for entry in away]
    counts = Counter("CANNOT_ASSESS" if entry == "n-a" else entry for entry in given)
    top = max(counts.values())
    best = [entry for entry, count in counts.items() if count == top]
    return best[0] if len(best) == 1 else None


def truth_of(item, place, criterion):
    """The stated truth, or the consensus."""
    if "ground_truth" in item:
        return item["ground_truth"][place]
    return agreed(criterion, [labels[place] for labels in item.get("annotations", {}).values()])


def kappa(pairs, criterion):
    """Chance-corrected agreement by comparing every truth with every answer."""
    order = [*labels_of(criterion), "abstention"]

    def apart(one, other):
        if criterion.get("scale_type") == "ordinal":
            return (order.index(one) - order.index(other)) ** 2
        return int(one != other)

    n = len(pairs)
    chance = sum(apart(one, other) for one, _ in pairs for _, other in pairs)
    if not chance:
        return None
    return 1 - n * sum(apart(one, other) for one, other in pairs) / chance


def alpha(units, criterion):
    """Krippendorff's alpha by going through every ordered pair of every unit."""
    order = [*labels_of(criterion), "abstention"]
    units = [unit for unit in units if len(unit) >= 2]
    if len(units) < 2:
        return None
    pairs = Counter()
    for unit in units:
        for one, other in permutations(unit, 2):
            pairs[one, other] += 1 / (len(unit) - 1)
    margins = Counter()
    for (one, _), weight in pairs.items():
        margins[one] += weight

    def delta(one, other):
        if one == other:
            return 0.0
        if criterion.get("scale_type") != "ordinal":
            return 1.0
        low, high = sorted((order.index(one), order.index(other)))
        between = sum(margins[label] for label in order[low : high + 1])
        return (between - (margins[one] + margins[other]) / 2) ** 2

    n = sum(margins.values())
    expected = sum(margins[one] * margins[other] * delta(one, other) for one in margins for other in margins)
    if not expected:
        return None
    return 1 - (n - 1) * sum(weight * delta(*pair) for pair, weight in pairs.items()) / expected


def mean(values):
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def random_panel(seed, size):
    """A votes file whose first item is labelled and judged by everyone."""
    rng = random.Random(seed)
    failure = {"failure": "parse"}

    def entry(criterion, rare):
        return rng.choice([*labels_of(criterion) * 2, *rare])

    def row(rare=("CANNOT_ASSESS", None)):
        return [entry(criterion, rare) for criterion in CRITERIA]

    def cells():
        found = row(("CANNOT_ASSESS", None, failure))
        for place, criterion in enumerate(CRITERIA):
            if rng.random() < 0.25:
                found[place] = [entry(criterion, ("CANNOT_ASSESS", failure)) for _ in range(rng.randint(2, 4))]
        return found

    items = []
    for number in range(size):
        item = {"id": f"q{number}", "metadata": {"group": f"g{number % 3}"}, "final": row(("CANNOT_ASSESS",))}
        if rng.random() < 0.5 or not number:
            item["ground_truth"] = row()
        people = [person for person in PEOPLE if rng.random() < 0.5]
        if people:
            item["annotations"] = {person: row() for person in people}
        item["votes"] = {judge: cells() for judge in JUDGES if not number or rng.random() < 0.8}
        if not number:
            item["ground_truth"][0] = "MET"
            item["votes"]["a"][0] = "MET"
        items.append(item)
    return votes_value(items)


def panels(*, most=7):
    """Votes files with every kind of criterion and cell; one draw makes a whole file, which is quick."""
    return st.builds(random_panel, st.integers(0, 2**32), st.integers(1, most))


def used(value):
    """The items that count: labelled, in id order."""
    labelled = [item for item in value["items"] if "ground_truth" in item or "annotations" in item]
    return sorted(labelled, key=lambda item: item["id"])
