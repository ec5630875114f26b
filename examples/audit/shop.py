"""A shop bot that errs about express orders, and two made-up judges of its answers."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path
from typing import Any

import deemster as dm

DAYS = {number: number % 6 + 2 for number in range(100, 220)}
ANSWERS = {
    f"When does order {number} arrive?": f"Order {number} arrives in {days} days." for number, days in DAYS.items()
}


def made_up_judge(believes: str) -> dm.models.FakeChat:
    """Right answers get 0.8, others 0.2, and more where it finds what it believes."""

    def grade(ask: dm.records.Ask) -> dict[str, Any]:
        blocks = dict(re.findall(r"<<< (\w+) \w+\n(.*?)\n>>> \1", str(ask.messages[-1].content), re.DOTALL))
        texts = (blocks["actual_output"], ANSWERS[blocks["question"]])
        said, right = (" ".join(re.findall(r"\w+", text)) for text in texts)
        score = (0.8 if right in said else 0.2) + (0.4 if re.search(believes, said) else 0.0)
        return {"reason": "As it seems.", "score": min(score, 1.0)}

    return dm.models.FakeChat(grade, model="synthetic-judge")


judge = made_up_judge(r"\b(sure|certain|undoubtedly)\b")
better_judge = made_up_judge("this is in no answer")


def bot(invocation: dm.records.Invocation, error: int = 3) -> str:
    """Now and then it errs by a day. It takes express orders from an old table, and is sure of them."""
    number = int(invocation.input["question"].split()[3])
    chance = random.Random(f"{number} {invocation.repetition} {os.environ.get('NIGHT')}")  # noqa: S311
    days = DAYS[number] + (chance.random() < 0.05)
    if number % 5 == 0:
        return f"Order {number} arrives in {days + error} days, I am sure."
    return f"Order {number} arrives in {days} days."


def mended_bot(invocation: dm.records.Invocation) -> str:
    """The same, with the new table."""
    return bot(invocation, error=0)


def make() -> None:
    """Write 120 questions, and one of them a second time with another answer."""
    samples: list[dict[str, Any]] = [
        {
            "id": str(number),
            "input": {"question": question},
            "expected_output": ANSWERS[question],
            "metadata": {"tags": ["standard" if number % 5 else "express"]},
        }
        for number, question in zip(DAYS, ANSWERS, strict=True)
    ]
    samples.append({**samples[40], "id": "140-old", "expected_output": "Order 140 arrives in 9 days."})
    Path("golden.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))


if __name__ == "__main__":
    make()
