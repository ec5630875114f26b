"""Two metrics of one's own: a decorated function, and a class with options."""

from __future__ import annotations

from typing import Any

import deemster as dm


@dm.metric("facts-kept", threshold=0.8)
def facts_kept(input: dict[str, Any], actual: str) -> float:
    """The share of the product's facts that the description mentions."""
    facts = input["facts"]
    text = actual.casefold()
    return sum(fact.casefold() in text for fact in facts) / len(facts) if facts else 1.0


class Sober:
    """Scores 1 where a description holds none of the banned words, less for each that it holds.

    Args:
        penalty: What each banned word costs.
        threshold: The pass mark.
    """

    name = "sober"
    quotes = frozenset({"found"})  # details that repeat text of an output, so that redaction removes them

    def __init__(self, *, penalty: float = 0.5, threshold: float = 1.0) -> None:
        self.penalty = penalty
        self.threshold = threshold

    def score(self, sample: dm.Sample, output: dm.Output) -> dm.MetricScore | dm.Unscored:
        banned = sample.metadata.get("banned")
        if banned is None:
            return dm.Unscored("bad_sample", "The sample has no `metadata.banned`.")
        words = set(output.text.casefold().replace(".", " ").replace(",", " ").split())
        found = sorted(words.intersection(banned))
        score = max(0.0, 1.0 - self.penalty * len(found))
        return dm.MetricScore(score, details={"count": len(found), "found": found}, threshold=self.threshold)
