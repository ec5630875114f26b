"""Labelled items and a judge whose accuracy depends on the wording of a criterion."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping

import deemster as dm

RUBRIC = dm.Rubric.parse("""\
name: replies
guidelines: Judge the text alone.
criteria:
  - name: facts
    requirement: The facts are alright.
  - name: padding
    weight: -4
    requirement: There is padding.
  - name: depth
    weight: 6
    requirement: How deep is it?
    options:
      - { label: names nothing, value: 0 }
      - { label: names one cause, value: 0.5 }
      - { label: names two causes, value: 1 }
  - name: short
    requirement: It is short.
    check: { metric: length-within, args: { max_words: 50 } }
""")
LABELS = {
    "facts": ("MET", "UNMET"),
    "padding": ("UNMET", "MET"),
    "depth": ("names nothing", "names one cause", "names two causes"),
}
BETTER = "Every number in the text is one of those given."


def lot(*parts: object) -> float:
    """A number in [0, 1) that follows from its parts alone."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8]) / 2**64


def truth_of(name: str, number: int, world: object = 0) -> str:
    labels = LABELS[name]
    return labels[int(lot("truth", world, name, number) * len(labels))]


def dataset(items: int, *, world: object = 0, rubric: dm.Rubric = RUBRIC) -> dm.RubricDataset:
    """Items with every label, ten of each author."""
    return dm.RubricDataset(
        [
            {
                "id": f"item-{number:04d}",
                "submission": f"Submission number {number} of this set.",
                "ground_truth": [truth_of(name, number, world) for name in LABELS] + [None],
                "metadata": {"author": number // 10},
            }
            for number in range(items)
        ],
        name="replies",
        prompt="Answer the letter.",
        rubric=rubric,
    )


class Judge:
    """Right with a chance that the wording decides, by a lot that the wording and the item decide.

    Attributes:
        asked: How many questions it was asked.
    """

    def __init__(self, chances: Mapping[str, float], *, usual: float = 0.95, world: object = 0) -> None:
        self.chances, self.usual, self.world, self.asked = dict(chances), usual, world, 0

    def __call__(self, ask: dm.records.Ask) -> dict[str, object]:
        self.asked += 1
        text = ask.messages[-1].content
        number = int(re.search(r"Submission number (\d+)", text)[1])
        requirement = re.search(r"The (?:requirement|question):\n(.*)\n", text)[1]
        name = next((each for each, words in WORDS.items() if any(word in requirement for word in words)), "facts")
        chance = self.chances.get(requirement, self.usual)
        truth = truth_of(name, number, self.world)
        said = truth
        if lot("judge", self.world, requirement, number) >= chance:
            others = [label for label in LABELS[name] if label != truth]
            said = others[int(lot("other", self.world, requirement, number) * len(others))]
        if name != "depth":
            return {"reason": "So it reads.", "verdict": said}
        option = re.search(rf"^(\d+)\. {said}$", text, re.MULTILINE)[1]
        return {"reason": "So it reads.", "option": int(option)}


WORDS = {"padding": ("padding",), "depth": ("deep", "causes")}


class Writer:
    """Proposes wordings in turn."""

    def __init__(self, propose: Callable[[int], str | dict[str, object]]) -> None:
        self.propose, self.asked, self.seen = propose, 0, []

    def __call__(self, ask: dm.records.Ask) -> object:
        self.asked += 1
        self.seen.append(ask.messages[-1].content)
        made = self.propose(self.asked)
        return {"diagnosis": "It does not say which.", "requirement": made} if isinstance(made, str) else made


def models(judge: object, writer: object) -> dict[str, object]:
    return {"judge": dm.models.FakeChat(judge), "writer": dm.models.FakeChat(writer)}


GRADER = dm.CriterionGrader(dm.Judge("j", "judge"))
