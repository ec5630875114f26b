"""Writes the data of this folder: three judges and three people on the answers of a support bot.

Everything comes from one seed and from `random.random` alone, which gives the same numbers on every machine. Run it
with a folder to write elsewhere: `python make_votes.py [FOLDER]`.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

SEED = 20260301
CONVERSATIONS = 60
TURNS = 4
TOPICS = ("billing", "delivery", "returns", "account")
LABELLED = 0.8
UNCLEAR = 0.03
UNCLEAR_GIVEN_UP = 0.8
ABSTAIN = "CANNOT_ASSESS"


class Trait(NamedTuple):
    """A criterion, and where a perceived quality falls on it: above `cuts[k]` means `labels[k + 1]` or better."""

    name: str
    weight: float
    requirement: str
    labels: tuple[str, ...]
    cuts: tuple[float, ...]
    values: tuple[float, ...] = ()
    nominal: bool = False

    def entry(self) -> dict[str, Any]:
        """The criterion as a votes file has it."""
        entry: dict[str, Any] = {"name": self.name, "weight": self.weight, "requirement": self.requirement}
        if self.values:
            entry["scale_type"] = "nominal" if self.nominal else "ordinal"
            pairs = zip(self.labels, self.values, strict=True)
            entry["options"] = [{"label": label, "value": value} for label, value in pairs]
        return entry


class Rater(NamedTuple):
    """How a rater perceives an answer: shifted by `bias`, blurred by `blur`, abstaining on a share `gives_up`."""

    name: str
    bias: float
    blur: float
    gives_up: float
    fails: float = 0.0
    repeats: int = 1
    sure: float = 0.0


MET = ("UNMET", "MET")
TRAITS = (
    Trait("grounded", 10, "Every claim about the shop is supported by its handbook.", MET, (-0.6,)),
    Trait("actionable", 8, "The customer can act on the answer without asking again.", MET, (-0.1,)),
    Trait("asks-back", 3, "The answer asks for what is missing before it promises anything.", MET, (0.7,)),
    # A fault is MET if quality is low, so the labels are reversed.
    Trait("overpromises", -6, "The answer promises what the shop does not offer.", ("MET", "UNMET"), (-0.9,)),
    Trait(
        "completeness", 6, "How much of the question is answered?",
        ("nothing", "part", "most", "all"), (-1.1, -0.2, 0.6), (0.0, 0.3, 0.7, 1.0),
    ),
    Trait(
        "clarity", 4, "How easy is the answer to follow?",
        ("confusing", "readable", "clear"), (-0.8, 0.4), (0.0, 0.5, 1.0),
    ),
    Trait(
        "tone", 2, "Which tone does the answer take?",
        ("curt", "neutral", "warm", "pushy"), (-0.8, 0.5, 1.6), (0.2, 0.8, 1.0, 0.0), nominal=True,
    ),
)  # fmt: skip
JUDGES = (
    Rater("atlas", bias=0.05, blur=0.35, gives_up=0.01, sure=6.0),
    Rater("breeze", bias=0.60, blur=0.45, gives_up=0.005),
    Rater("cinder", bias=-0.05, blur=1.00, gives_up=0.03, fails=0.02, repeats=3),
)
PEOPLE = (
    Rater("ana", bias=0.0, blur=0.25, gives_up=0.01),
    Rater("ben", bias=-0.15, blur=0.40, gives_up=0.02),
    Rater("chioma", bias=0.10, blur=0.35, gives_up=0.01),
)


def normal(rng: random.Random) -> float:
    """A nearly normal draw of mean 0 and standard deviation 1."""
    return sum(rng.random() for _ in range(12)) - 6


def verdict(trait: Trait, seen: float) -> str:
    """The label of a perceived quality."""
    return trait.labels[sum(seen > cut for cut in trait.cuts)]


def shares(trait: Trait, seen: float, sure: float) -> list[float]:
    """How probable each label is, in hundredths that sum to 1."""
    above = [1.0, *(1 / (1 + math.exp(-sure * (seen - cut))) for cut in trait.cuts), 0.0]
    hundredths = [round(100 * (high - low)) for high, low in itertools.pairwise(above)]
    hundredths[hundredths.index(max(hundredths))] += 100 - sum(hundredths)
    return [part / 100 for part in hundredths]


def cell(rng: random.Random, rater: Rater, trait: Trait, quality: float | None, *, repeated: bool) -> Any:
    """The label of one rater for one criterion of one answer; without a quality most abstain and the others guess."""
    if rng.random() < rater.fails:
        return {"failure": "parse", "message": "The reply holds no JSON object."}
    if rng.random() < (UNCLEAR_GIVEN_UP if quality is None else rater.gives_up):
        return ABSTAIN
    if quality is None:
        quality = normal(rng)
    if rater.sure:
        seen = quality + rater.bias + rater.blur * normal(rng)
        chances = shares(trait, seen, rater.sure)
        label = trait.labels[chances.index(max(chances))]
        return {"verdict": label, "p": chances if trait.values else chances[trait.labels.index("MET")]}
    # A judge repeats its errors: most of the blur is the same in every repeat.
    steady = quality + rater.bias + 0.9 * rater.blur * normal(rng)
    times = rater.repeats if repeated else 1
    said = [verdict(trait, steady + 0.4 * rater.blur * normal(rng)) for _ in range(times)]
    return said if repeated and rater.repeats > 1 else said[0]


def items(rng: random.Random) -> Iterator[dict[str, Any]]:
    """The answers of every conversation, with the labels of judges and people."""
    for number in range(CONVERSATIONS):
        topic = TOPICS[int(rng.random() * len(TOPICS))]
        mood = normal(rng)
        for turn in range(TURNS):
            heated = rng.random() < 0.25
            answer = 0.6 * mood + 0.6 * normal(rng) + 0.2
            quality = [None if rng.random() < UNCLEAR else answer + 0.6 * normal(rng) for _ in TRAITS]
            item: dict[str, Any] = {
                "id": f"c{number + 1:02d}-{turn + 1}",
                "tags": [topic, "heated"] if heated else [topic],
                "metadata": {"conversation": f"c{number + 1:02d}", "turn": turn + 1},
            }
            # Labelled answers are drawn at random; corrected means are valid only then.
            if rng.random() < LABELLED:
                item["annotations"] = {
                    person.name: [
                        cell(rng, person, *pair, repeated=False) for pair in zip(TRAITS, quality, strict=True)
                    ]
                    for person in PEOPLE
                    if rng.random() < 0.9
                }
            if rng.random() < 0.01:
                yield item | {"error": "The bot gave no answer within 30 s."}
                continue
            harder = 0.5 * heated
            repeated = turn == 0
            item["votes"] = {
                judge.name: [
                    cell(rng, judge._replace(blur=judge.blur + harder), *pair, repeated=repeated and place < 3)
                    for place, pair in enumerate(zip(TRAITS, quality, strict=True))
                ]
                for judge in JUDGES
            }
            yield item


def votes_text(rows: list[dict[str, Any]]) -> str:
    """The votes file, one item on each line."""
    head = {
        "schema_version": "deemster.votes.v1",
        "name": "support-bot pilot",
        "rubric": {"name": "support-bot", "version": "3", "criteria": [trait.entry() for trait in TRAITS]},
        "judges": [{"id": judge.name, "model": f"{judge.name}-example"} for judge in JUDGES],
    }
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    body = ",\n".join(f"    {json.dumps(row)}" for row in rows)
    return "{\n" + ",\n".join(lines) + ',\n  "items": [\n' + body + "\n  ]\n}\n"


def labels_text(rows: list[dict[str, Any]]) -> str:
    """The people's labels as a spreadsheet, a line for each answer and person."""
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    writer.writerow(["id", "conversation", "person", *(trait.name for trait in TRAITS)])
    for row in rows:
        for person, labels in row.get("annotations", {}).items():
            writer.writerow([row["id"], row["metadata"]["conversation"], person, *labels])
    return sheet.getvalue()


def attempts(cells: list[Any]) -> Iterator[list[str]]:
    """The cells of a judge, a line for each time it was asked; blank where it was not asked again."""
    for turn in range(max(len(cell) if isinstance(cell, list) else 1 for cell in cells)):
        said = (cell[turn] if isinstance(cell, list) else None if turn else cell for cell in cells)
        yield [_word(cell) for cell in said]


def _word(cell: Any) -> str:
    if isinstance(cell, dict):
        return "error" if "failure" in cell else cell["verdict"]
    return cell or ""


def verdicts_text(rows: list[dict[str, Any]]) -> str:
    """The verdicts of the judges as a spreadsheet: a line for each answer, judge and attempt, without probabilities."""
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    writer.writerow(["id", "conversation", "tags", "judge", "error", *(trait.name for trait in TRAITS)])
    for row in rows:
        head = [row["id"], row["metadata"]["conversation"], "|".join(row["tags"])]
        if "error" in row:
            writer.writerow([*head, "", row["error"], *("" for _ in TRAITS)])
        for judge, cells in row.get("votes", {}).items():
            writer.writerows([*head, judge, "", *said] for said in attempts(cells))
    return sheet.getvalue()


def main(folder: Path) -> None:
    """Write the files to a folder."""
    rows = list(items(random.Random(SEED)))  # noqa: S311 - made-up data, not a secret
    (folder / "votes.json").write_text(votes_text(rows), encoding="utf-8", newline="\n")
    (folder / "labels.csv").write_text(labels_text(rows), encoding="utf-8", newline="\n")
    (folder / "verdicts.csv").write_text(verdicts_text(rows), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
