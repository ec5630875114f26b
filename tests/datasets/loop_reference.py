"""A slow derivation, written as the specification words it, and votes files to try it on."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

from hypothesis import strategies as st

ABSTAIN, FAILED, FAILED_WORST, MISSING = "abstain", -2, -3, -1
RULES = {
    "binary": ("majority", "weighted", "unanimous", "any"),
    "ordinal": ("mean", "median", "weighted_mean", "mode", "min", "max"),
    "nominal": ("mode", "weighted_mode", "unanimous"),
}
DEFAULTS = {"binary": "majority", "ordinal": "mean", "nominal": "mode"}
KEYS = {"binary": "aggregation", "ordinal": "ordinal_aggregation", "nominal": "nominal_aggregation"}


class Derived(NamedTuple):
    final: list[int]
    score: float | None
    true_score: float | None
    judges: list[float | None]


class Plain:
    """A criterion by its labels and values; the last label abstains."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.weight = fields.get("weight", 10.0)
        options = fields.get("options")
        self.kind = "binary" if not options else fields.get("scale_type", "ordinal")
        self.labels = ["MET", "UNMET"] if not options else [option["label"] for option in options]
        self.values = [1.0, 0.0] if not options else [option["value"] for option in options]
        self.rule = fields.get("aggregation")

    def worst_among(self, codes):
        sign = -1 if self.weight < 0 else 1
        return min(codes, key=lambda code: (sign * self.values[code], code))

    @property
    def worst(self):
        return self.worst_among(range(len(self.values)))

    def code(self, cell):
        if cell is None:
            return MISSING
        if isinstance(cell, dict) and "failure" in cell:
            return FAILED_WORST if cell["failure"] == "unknown" else FAILED
        label = cell["verdict"] if isinstance(cell, dict) else cell
        return len(self.labels) if label == "CANNOT_ASSESS" else self.labels.index(label)

    def aggregated(self, votes, rule):
        """One code of pairs of code and weight; failures have their replacements, missing votes are absent."""
        kept = [(code, weight) for code, weight in votes if code != len(self.labels)]
        if not kept:
            return len(self.labels)
        codes = [code for code, _ in kept]
        if len(set(codes)) == 1 and len(kept) == len(votes):
            return codes[0]
        if rule == "any":
            return 0 if 0 in codes else 1
        if rule == "unanimous":
            if self.kind == "binary":
                return 1 if 1 in codes else 0
            return codes[0] if len(set(codes)) == 1 else len(self.labels)
        if rule in ("min", "max"):
            end = (min if rule == "min" else max)(self.values[code] for code in codes)
            return self.worst_among([code for code in codes if self.values[code] == end])
        if rule in ("majority", "mode", "weighted", "weighted_mode"):
            tally = Counter()
            for code, weight in kept:
                tally[code] += weight if rule.startswith("weighted") else 1
            top = max(tally.values())
            return self.worst_among([code for code, count in tally.items() if count >= top - 1e-9])
        if rule == "median":
            ordered = sorted(self.values[code] for code in codes)
            middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
        else:
            weights = [weight if rule == "weighted_mean" else 1 for _, weight in kept]
            parts = [self.values[code] * weight for code, weight in zip(codes, weights, strict=True)]
            middle = math.fsum(parts) / math.fsum(weights)
        distances = [abs(value - middle) for value in self.values]
        near = [code for code, distance in enumerate(distances) if distance <= min(distances) + 1e-9]
        return self.worst_among(near)

    def merged(self, cell, rule):
        """The one code of a cell."""
        if not isinstance(cell, list):
            return self.code(cell)
        codes = [code for code in map(self.code, cell) if code != MISSING]
        good = [code for code in codes if code >= 0]
        if good:
            return self.aggregated([(code, 1) for code in good], rule)
        return FAILED_WORST if FAILED_WORST in codes else FAILED if codes else MISSING

    def stand_in(self, code):
        return {FAILED: len(self.labels), FAILED_WORST: self.worst}.get(code, code)


def plain_score(criteria, codes, grading, penalty):
    if all(code < 0 for code in codes):
        return None
    total = positive = negative = 0.0
    strategy = grading.get("abstention", "skip")
    for criterion, given in zip(criteria, codes, strict=True):
        if given == MISSING:
            continue
        code, weight = criterion.stand_in(given), criterion.weight
        if code < len(criterion.labels):
            value = criterion.values[code]
        elif strategy == "skip":
            continue
        elif strategy == "partial":
            value = grading.get("partial_credit", 0.5) if weight > 0 else 0
        else:
            value = criterion.values[criterion.worst] if strategy == "fail" else 0
        total += weight * value
        positive += max(weight, 0)
        negative += max(-weight, 0)
    if not positive and not negative:
        return None
    if not grading.get("normalize", True):
        return total - penalty
    share = total / positive if positive else 1 + total / negative
    return max(min(max(share, 0), 1) - penalty, 0)


def plain_derivation(root) -> dict[str, Derived]:
    """Final verdicts and scores by item id, of a file with one rubric; recorded results are ignored."""
    criteria = [Plain(fields) for fields in root["rubric"]["criteria"]]
    grading = root.get("grading", {})
    judges = {judge["id"]: judge.get("weight", 1.0) for judge in root["judges"]}
    rules = [criterion.rule or grading.get(KEYS[criterion.kind], DEFAULTS[criterion.kind]) for criterion in criteria]
    found = {}
    for item in root["items"]:
        penalty = item.get("penalty", 0)
        own = {
            judge: [c.merged(cell, rule) for c, rule, cell in zip(criteria, rules, cells, strict=True)]
            for judge, cells in item.get("votes", {}).items()
        }
        final = []
        for at, (criterion, rule) in enumerate(zip(criteria, rules, strict=True)):
            votes = [(codes[at], judges[judge]) for judge, codes in own.items() if codes[at] != MISSING]
            raw = [code for code, _ in votes]
            if not raw:
                final.append(MISSING)
            elif all(code < 0 for code in raw):
                final.append(FAILED_WORST if FAILED_WORST in raw else FAILED)
            else:
                final.append(criterion.aggregated([(criterion.stand_in(code), w) for code, w in votes], rule))
        truth = item.get("ground_truth")
        codes = [criterion.code(entry) for criterion, entry in zip(criteria, truth or (), strict=False)]
        complete = truth is not None and MISSING not in codes
        found[item["id"]] = Derived(
            final,
            plain_score(criteria, final, grading, penalty),
            plain_score(criteria, codes, grading, penalty) if complete else None,
            [plain_score(criteria, own[judge], grading, penalty) if judge in own else None for judge in judges],
        )
    return found


CRITERIA = [
    {"name": "facts", "requirement": "r", "weight": 10},
    {"name": "padding", "requirement": "r", "weight": -4},
    {"name": "spare", "requirement": "r", "weight": 0},
    {
        "name": "depth",
        "requirement": "r",
        "weight": 6,
        "options": [{"label": "poor", "value": 0}, {"label": "fair", "value": 0.5}, {"label": "good", "value": 1}],
    },
    {
        "name": "noise",
        "requirement": "r",
        "weight": -3,
        "options": [{"label": "none", "value": 0}, {"label": "some", "value": 0.25}, {"label": "much", "value": 1}],
    },
    {
        "name": "tone",
        "requirement": "r",
        "weight": 2,
        "scale_type": "nominal",
        "options": [{"label": "curt", "value": 0.25}, {"label": "warm", "value": 1}, {"label": "cold", "value": 0}],
    },
]
FAILURES = st.sampled_from(["infrastructure", "parse", "unknown"]).map(lambda category: {"failure": category})


def _labels(criterion):
    options = criterion.get("options")
    return [option["label"] for option in options] if options else ["MET", "UNMET"]


def _entries(criterion):
    return st.sampled_from([*_labels(criterion), "CANNOT_ASSESS", None])


def _cells(criterion):
    label = st.sampled_from([*_labels(criterion), "CANNOT_ASSESS"])
    simple = st.one_of(_entries(criterion), label.map(lambda verdict: {"verdict": verdict}), FAILURES)
    return st.one_of(simple, simple, simple, st.lists(simple, min_size=1, max_size=4))


@st.composite
def votes_files(draw):
    """A votes file with one rubric."""
    criteria = []
    for fields in draw(st.lists(st.sampled_from(CRITERIA), min_size=1, unique_by=lambda fields: fields["name"])):
        kind = "binary" if "options" not in fields else fields.get("scale_type", "ordinal")
        rule = draw(st.sampled_from([None, *RULES[kind]]))
        criteria.append({**fields, "aggregation": rule} if rule else fields)
    weights = st.sampled_from([1.0, 2.0, 0.5])
    judges = [{"id": name, "weight": draw(weights)} for name in "abcd"[: draw(st.integers(1, 4))]]
    grading = {KEYS[kind]: draw(st.sampled_from(RULES[kind])) for kind in RULES}
    grading |= {
        "abstention": draw(st.sampled_from(["skip", "zero", "partial", "fail"])),
        "partial_credit": draw(st.sampled_from([0.5, 0.25])),
        "normalize": draw(st.booleans()),
    }
    items = []
    for at in range(draw(st.integers(1, 4))):
        item: dict[str, Any] = {"id": f"q{at}", "tags": draw(st.sampled_from([[], ["a", "b"]]))}
        item["metadata"] = draw(st.sampled_from([{}, {"doc": 1, "by": None}]))
        if draw(st.integers(0, 5)):
            cast = draw(st.lists(st.sampled_from(judges), unique_by=lambda judge: judge["id"]))
            item["votes"] = {judge["id"]: [draw(_cells(criterion)) for criterion in criteria] for judge in cast}
        else:
            item["error"] = "timed out"
        if draw(st.booleans()):
            item["ground_truth"] = [draw(_entries(criterion)) for criterion in criteria]
            names = draw(st.lists(st.sampled_from(["ann", "bob", "eve"]), unique=True))
            item["annotations"] = {name: [draw(_entries(criterion)) for criterion in criteria] for name in names}
        if draw(st.booleans()):
            item["final"] = [draw(_entries(criterion)) for criterion in criteria]
            item["score"] = draw(st.sampled_from([None, 0.25, 1.0]))
        if draw(st.booleans()):
            item["penalty"] = draw(st.sampled_from([0.0, 0.125, 0.75]))
        items.append(item)
    return {
        "schema_version": "deemster.votes.v1",
        "name": "drawn",
        "dataset_fingerprint": "0" * 64,
        "rubric": {"criteria": criteria},
        "judges": judges,
        "grading": grading,
        "items": items,
    }
