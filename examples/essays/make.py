"""Writes `letters.yml` and the replies of the scripted judges: `python make.py [FOLDER]`.

No model takes part. The letters, the labels and what the judges say are those of `written.py`; the judges' replies are
recorded under the very requests that grading by `rubric.yaml` makes, so they have to be written again when a prompt or
the rubric changes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from written import CODES, LETTERS, REASONS, TASK, Letter

import deemster as dm

HERE = Path(__file__).parent
JUDGES = ("ada", "bert", "cleo")
PEOPLE = ("hanna", "jonas")


def labels(letter: Letter, name: str) -> list[str | None]:
    """The labels of one rater for a letter, by criterion; None for an unreadable verdict."""
    word = letter.verdicts.split()[(*PEOPLE, *JUDGES).index(name)]
    return [CODES[criterion].get(code) for criterion, code in zip(CODES, word, strict=True)]


def counted(text: str) -> str:
    """The label of the check criterion, the same for every rater."""
    return "MET" if 40 <= len(re.findall(r"\w+", text)) <= 90 else "UNMET"


def dataset() -> dm.RubricDataset:
    """The letters with the labels of both people."""
    items = [
        {
            "id": name,
            "submission": letter.text,
            "annotations": {person: [*labels(letter, person), counted(letter.text)] for person in PEOPLE},
        }
        for name, letter in LETTERS.items()
    ]
    return dm.RubricDataset(items, name="letters", prompt=TASK, rubric=dm.Rubric.load(HERE / "rubric.yaml"))


def judge(name: str) -> Callable[[dm.records.Ask], Any]:
    """A judge that finds the letter in the question and gives the scripted verdict on every criterion."""

    def reply(ask: dm.records.Ask) -> dict[str, Any]:
        text = ask.messages[-1].content
        letter = next(letter for letter in LETTERS.values() if f"\n{letter.text}\n" in text)
        shown = re.split(r"^Criterion ", text, flags=re.MULTILINE)
        verdicts = []
        for criterion, label in zip(CODES, labels(letter, name), strict=True):
            if label is None:
                verdicts.append({"criterion": criterion, "reason": "Hm.", "verdict": "perhaps"})
            elif label in REASONS:
                verdicts.append({"criterion": criterion, "reason": REASONS[label], "verdict": label})
            else:
                part = next(each for each in shown if each.startswith(f'"{criterion}"'))
                number = int(re.findall(rf"^(\d+)\. {re.escape(label)}$", part, re.MULTILINE)[0])
                verdicts.append({"criterion": criterion, "reason": f"It is this: {label}.", "option": number})
        return {"verdicts": verdicts}

    return reply


def main(folder: Path) -> None:
    """Write all files into a folder."""
    letters = dataset()
    letters.save(folder / "letters.yml")
    models = {}
    for name in JUDGES:
        recording = folder / "replies" / f"{name}.jsonl"
        recording.parent.mkdir(exist_ok=True)
        recording.unlink(missing_ok=True)
        models[name] = dm.models.Role(
            client=dm.models.FakeChat(judge(name), model=f"scripted-{name}"), recording=str(recording)
        )
    panel = dm.CriterionGrader([dm.Judge(name, name) for name in JUDGES], calls="per_item", quorum=2)
    dm.grade(letters, panel, models=models)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
