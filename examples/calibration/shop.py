"""Two versions of a shop bot, a made-up judge that likes long answers, and people who fill in a sheet."""

from __future__ import annotations

import csv
import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import deemster as dm

PADDING = " We are glad to help you with any question about your order, today and on every other day."


def make() -> None:
    """Write 300 questions, and the answers of two versions of the bot: the second one is worse and longer."""
    chance = random.Random(7)  # noqa: S311
    days = {f"q{number:03}": number % 9 + 1 for number in range(300)}
    samples = [
        {
            "id": name,
            "input": {"question": f"When does order {name} arrive?"},
            "expected_output": f"It arrives in {number} days.",
            "metadata": {"tags": ["express" if number % 3 == 0 else "standard"]},
        }
        for name, number in days.items()
    ]
    write_lines("golden.jsonl", samples)
    for version, right, long in (("before", 0.8, 0.2), ("after", 0.65, 0.9)):
        answers = []
        for name, number in days.items():
            said = number if chance.random() < right else number + 3
            padding = PADDING if chance.random() < long else ""
            answers.append({"id": name, "output": f"It arrives in {said} days.{padding}"})
        write_lines(f"{version}.jsonl", answers)


def write_lines(name: str, rows: list[dict[str, Any]]) -> None:
    """Write rows as JSON lines."""
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def days_in(text: str) -> list[str]:
    """The numbers of days that a text names."""
    return re.findall(r"in (\d+) days", text)


def fill_in(sheet: Path) -> None:
    """Do what people do with a sheet: compare the days."""
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["verdict"] = "pass" if days_in(row["output"]) == days_in(row["expected_output"]) else "fail"
    with sheet.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def decide(ask: dm.records.Ask) -> dict[str, Any]:
    """Judge: right answers mostly pass, and wrong ones often do if they are long."""
    text = str(ask.messages[-1].content)
    expected, said = days_in(text)[:2]
    order = "".join(re.findall(r"order (q\d+)", text)[:1])
    luck = random.Random(order + said).random()  # noqa: S311
    passes = luck > 0.1 if said == expected else PADDING.strip() in text and luck < 0.7
    return {"reason": "The days were compared.", "score": round((0.6 if passes else 0.1) + luck / 4, 3)}


judge = dm.models.FakeChat(decide, model="made-up", identity={"model": "made-up"})

if __name__ == "__main__":
    if len(sys.argv) == 1:
        make()
    else:
        fill_in(Path(sys.argv[1]))
