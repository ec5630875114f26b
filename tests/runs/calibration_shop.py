"""A small world for calibrations: a judge that is kind to long answers, and people who know the truth."""

from __future__ import annotations

import csv
import random
import re
from pathlib import Path

import deemster as dm
from tests.builders.json_lines import json_lines

PADDING = " We are glad to help you with any question about your order, today and on every other day."
SUITE = """\
name: shop
dataset: golden.jsonl
target: { outputs: before.jsonl }
metrics: [llm-as-judge]
models: { judge: { client: "tests.runs.calibration_shop:judge" } }
"""


def write_shop(folder: Path, *, size: int = 200) -> None:
    """Questions, and the answers of two versions of a bot: the second one is worse and longer."""
    chance = random.Random(7)
    days = {f"q{place:03}": place % 9 + 1 for place in range(size)}
    samples = [
        {
            "id": name,
            "input": {"question": f"When does order {name} arrive?"},
            "expected_output": f"It arrives in {number} days.",
            "metadata": {"tags": ["express" if number % 3 == 0 else "standard"]},
        }
        for name, number in days.items()
    ]
    lines = {"golden.jsonl": samples}
    for name, right, long in (("before", 0.8, 0.2), ("after", 0.65, 0.8)):
        lines[f"{name}.jsonl"] = [
            {
                "id": key,
                "output": f"It arrives in {number if chance.random() < right else number + 3} days."
                + (PADDING if chance.random() < long else ""),
            }
            for key, number in days.items()
        ]
    for name, rows in lines.items():
        (folder / name).write_text(json_lines(*rows))
    (folder / "suite.yml").write_text(SUITE)


def fill_in(sheet: str | Path, *, verdict=None) -> list[dict[str, str]]:
    """People fill in a sheet by the number of days, or as told."""
    with open(sheet, encoding="utf-8-sig", newline="") as file:  # noqa: PTH123
        rows = list(csv.DictReader(file))
    for row in rows:
        given, right = (re.search(r"in (\d+) days", row[key])[1] for key in ("output", "expected_output"))
        row["verdict"] = ("pass" if given == right else "fail") if verdict is None else verdict(row, given == right)
    with open(sheet, "w", encoding="utf-8-sig", newline="") as file:  # noqa: PTH123
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return rows


def decide(ask):
    """Right numbers mostly pass; wrong ones do where the answer is long."""
    text = ask.messages[-1].content
    expected, given = re.findall(r"in (\d+) days", text)[:2]
    luck = random.Random(re.search(r"order (q\d+)", text)[1] + given).random()
    is_long = PADDING.strip() in text
    passes = luck > 0.05 if expected == given else is_long and luck < 0.7
    score = (0.6 if passes else 0.1) + 0.15 * is_long + luck / 8
    return {"reason": "The days were compared.", "score": round(score, 3)}


judge = dm.models.FakeChat(decide, model="made-up-1", identity={"model": "made-up-1"})
