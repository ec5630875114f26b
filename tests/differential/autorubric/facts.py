"""What one call should find where it differs from autorubric on purpose: plain loops and the libraries of the field."""

from __future__ import annotations

import warnings
from functools import cached_property

import krippendorff
import numpy as np
from scipy.stats import kendalltau, spearmanr
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import fleiss_kappa

from tests.differential.autorubric.cases import labels

ABSTAINED = "CANNOT_ASSESS"
INJECTED = "Cannot assess / not applicable"


def mean(values: list[float | None]) -> float | None:
    held = [value for value in values if value is not None]
    return sum(held) / len(held) if held else None


class Column:
    """One criterion under one pair of modes: its pairs and votes, as labels or ABSTAINED."""

    def __init__(self, entry: dict, truth: list, final: list, votes: list[list], mode: str) -> None:
        self.entry, self.truth, self.final, self.votes, self.mode = entry, truth, final, votes, mode
        self.kind = entry["scale_type"] if "options" in entry else "binary"
        self.own_na = any(o.get("na") for o in entry.get("options", ()))

    def position(self, label: str) -> int:
        """The place of a label among the scored ones, in the order of values where there is one."""
        places = labels(self.entry)
        if self.kind == "ordinal":
            value = {o["label"]: o["value"] for o in self.entry["options"]}
            places.sort(key=value.__getitem__)
        return len(places) if label == ABSTAINED else places.index(label)

    @property
    def classes(self) -> list[tuple[int, str]]:
        """Index and label of every option that a pair of the mode can hold; an NA option of ours stands last."""
        options = self.entry["options"]
        keep = self.kind == "nominal" and self.mode == "as_category"
        held = [(place, o["label"]) for place, o in enumerate(options) if keep or not o.get("na")]
        return [*held, (len(options), INJECTED)] if keep and self.na_shown and not self.own_na else held

    @property
    def worst(self) -> str:
        if self.kind == "binary":
            return "UNMET"
        sign = -1 if self.entry["weight"] < 0 else 1
        scored = [o for o in self.entry["options"] if not o.get("na")]
        return min(scored, key=lambda o: sign * o["value"])["label"]

    def moded(self, label: str | None) -> str | None:
        """A label under the mode: itself, the worst, or None where it is left out."""
        if label != ABSTAINED or self.mode == "as_category":
            return label
        return self.worst if self.mode == "as_unmet" else None

    def pairs(self, said: list) -> list[tuple[int, int]]:
        """Pairs of positions of truth and verdict, without failed and excluded ones."""
        moded = [
            (self.moded(true), self.moded(one)) for true, one in zip(self.truth, said, strict=True) if one is not None
        ]
        return [(self.position(t), self.position(s)) for t, s in moded if t is not None and s is not None]

    def kappa(self, said: list) -> float | None:
        """Kappa over the full scale, quadratic for an ordinal criterion."""
        pairs = self.pairs(said)
        if len({place for pair in pairs for place in pair}) < 2:
            return None
        scale = list(range(len(labels(self.entry)) + 1))
        weights = "quadratic" if self.kind == "ordinal" else None
        return float(cohen_kappa_score(*zip(*pairs, strict=True), labels=scale, weights=weights))

    @property
    def uneven(self) -> bool:
        """Whether the classes seen are not evenly spaced on the scale."""
        return any(self.spread(said) for said in (self.final, *self.votes))

    def spread(self, said: list) -> bool:
        seen = sorted({place for pair in self.pairs(said) for place in pair})
        return self.kind == "ordinal" and len(set(np.diff(seen))) > 1

    @property
    def adjacent(self) -> float | None:
        return mean([float(abs(t - s) <= 1) for t, s in self.pairs(self.final)])

    @cached_property
    def codes(self) -> np.ndarray:
        """Judges by units, NaN for a vote that is missing under the mode."""
        moded = [[self.moded(one) for one in column] for column in self.votes]
        return np.array([[np.nan if one is None else self.position(one) for one in column] for column in moded])

    @property
    def na_voted(self) -> bool:
        return self.kind != "binary" and any(one == ABSTAINED for column in self.votes for one in column)

    @property
    def na_shown(self) -> bool:
        """Whether autorubric gives a multi-choice criterion an NA option: its own, or one that was voted."""
        return self.own_na or self.na_voted or ABSTAINED in self.final

    @property
    def pairable(self) -> int:
        """Units with two votes or more."""
        return int((np.isfinite(self.codes).sum(0) >= 2).sum())

    @property
    def alpha(self) -> float | None:
        held = self.codes[:, np.isfinite(self.codes).sum(0) >= 2]
        if len(held) < 2 or self.pairable < 2 or len(np.unique(held[np.isfinite(held)])) < 2:
            return None
        level = "ordinal" if self.kind == "ordinal" else "nominal"
        return float(krippendorff.alpha(reliability_data=self.codes, level_of_measurement=level))

    @property
    def fleiss(self) -> float | None:
        held = self.codes[:, np.isfinite(self.codes).all(0)].astype(int)
        if len(held) < 2 or held.shape[1] < 2 or len(np.unique(held)) < 2:
            return None
        counts = np.stack([np.bincount(unit, minlength=len(labels(self.entry)) + 1) for unit in held.T])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(fleiss_kappa(counts))


class Facts:
    """The columns of a votes file under a call, from what autorubric derived."""

    def __init__(self, votes: dict, derived: list[dict], call: dict) -> None:
        self.votes, self.call = votes, call
        self.judges = [judge["id"] for judge in votes["judges"]]
        used = [
            (item, made)
            for item, made in zip(votes["items"], derived, strict=True)
            if "ground_truth" in item and made["final"] is not None and not all(made["failed"])
        ]
        self.derived = [made for _, made in used]
        self.columns = [self._column(place, entry, used) for place, entry in enumerate(votes["rubric"]["criteria"])]

    def _column(self, place: int, entry: dict, used: list) -> Column:
        na = {o["label"] for o in entry.get("options", ()) if o.get("na")} | {INJECTED}

        def verdict_of(cell: str | dict | None) -> str | None:
            return ABSTAINED if isinstance(cell, str) and cell in na else cell if isinstance(cell, str) else None

        return Column(
            entry,
            [item["ground_truth"][place] for item, _ in used],
            [None if made["failed"][place] else verdict_of(made["final"][place]) for _, made in used],
            [
                [verdict_of(item["votes"].get(judge, [None] * (place + 1))[place]) for item, _ in used]
                for judge in self.judges
            ],
            self.call["na_mode" if "options" in entry else "cannot_assess"],
        )

    def accuracy(self, said: str | None, *, binary: bool = False) -> float | None:
        """Share of equal pairs over all criteria, of the final verdict or of a judge."""
        held = [pair for c in self.columns if not binary or c.kind == "binary" for pair in c.pairs(self.said(c, said))]
        return mean([float(t == s) for t, s in held])

    def said(self, column: Column, judge: str | None) -> list:
        return column.final if judge is None else column.votes[self.judges.index(judge)]

    def mean_kappa(self, judge: str | None) -> float | None:
        return mean([column.kappa(self.said(column, judge)) for column in self.columns])

    def uneven(self, judge: str | None) -> bool:
        return any(column.spread(self.said(column, judge)) for column in self.columns)

    def met(self, judge: str | None) -> tuple[int, int]:
        """How often truth and the other side say MET in pairs of binary criteria."""
        held = [pair for c in self.columns if c.kind == "binary" for pair in c.pairs(self.said(c, judge))]
        return sum(t == 0 for t, _ in held), sum(s == 0 for _, s in held)

    @property
    def na_kappa(self) -> float | None:
        """Kappa of abstaining or not, pooled over all multi-choice criteria."""
        held = [
            (true == ABSTAINED, one == ABSTAINED)
            for column in self.columns
            if column.kind != "binary"
            for true, one in zip(column.truth, column.final, strict=True)
            if one is not None
        ]
        if len({side for pair in held for side in pair}) < 2:
            return None
        return float(cohen_kappa_score(*zip(*held, strict=True)))

    def scores(self, judge: str | None) -> np.ndarray:
        """Pairs of predicted and true score, both defined."""
        held = [
            (made["score"] if judge is None else made["judge_scores"][judge], made["true_score"])
            for made in self.derived
        ]
        return np.array([pair for pair in held if None not in pair]).reshape(-1, 2)

    def nearly_tied(self, judge: str | None) -> bool:
        """Whether two scores of a side differ, but by no more than rounding."""
        gaps = np.diff(np.sort(self.scores(judge), axis=0), axis=0)
        return bool(((gaps > 0) & (gaps < 1e-12)).any())

    def rank_correlation(self, judge: str | None, name: str, field: str) -> float:
        """Spearman's or Kendall's coefficient, or its p-value, of scores without their last bits."""
        function = spearmanr if name.endswith("spearman") else kendalltau
        found = function(*self.scores(judge).round(12).T)
        return float(found.statistic if field == "coefficient" else found.pvalue)

    def shift(self, judge: str | None) -> bool:
        """Whether all differences of scores are one number, up to rounding."""
        held = self.scores(judge)
        if len(held) < 2:
            return False
        return bool(np.std(held[:, 0] - held[:, 1], ddof=1) <= 1e-12 * max(1.0, np.abs(held).max()))
