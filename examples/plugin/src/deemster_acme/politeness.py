"""The metric `acme-politeness`."""

import re

import deemster as dm


class Politeness:
    """How many of the words of courtesy an output has, up to what is enough.

    Args:
        enough: How many are enough for the score 1.
    """

    name = "acme-politeness"
    threshold = 0.5
    version = "1"  # raise it when the same output gets another mark: old and new marks are then not compared
    quotes = ("found",)  # the details that repeat the output: reports leave them out where text is private

    _WORDS = re.compile(r"\b(?:please|thank(?:s| you)|sorry|gladly|welcome)\b", re.IGNORECASE)

    def __init__(self, enough: int = 1) -> None:
        if enough < 1:
            raise dm.ConfigurationError(f"`enough` is at least 1, not {enough}.")
        self.enough = enough

    def score(self, sample: dm.Sample, output: dm.Output) -> dm.MetricScore | dm.Unscored:  # noqa: ARG002 - not needed here
        """Mark one output. A metric does no I/O and gives the same mark each time."""
        if not output.text.strip():
            return dm.Unscored("bad_output", "An empty output is neither polite nor rude.")
        found = self._WORDS.findall(output.text)
        return dm.MetricScore(min(1.0, len(found) / self.enough), details={"found": found})
