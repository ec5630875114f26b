"""A stand-in for a judge model, so that the suite runs offline. It compares words and understands nothing."""

import re

import deemster as dm


def judge_words(ask: dm.records.Ask) -> dict:
    """The reply of the stand-in: the share of the expected words that the answer has."""
    expected, actual = words(ask, "expected_output"), words(ask, "actual_output")
    found = expected & actual
    reason = f"Stand-in: {len(found)} of {len(expected)} words of the expected answer are in the answer."
    return {"reason": reason, "score": round(len(found) / len(expected), 2) if expected else 0}


def words(ask: dm.records.Ask, label: str) -> set[str]:
    """The words of one data block of the question."""
    found = re.search(rf"^<<< {label} \w+\n(.*?)\n>>> ", ask.messages[-1].content, re.DOTALL | re.MULTILINE)
    return set(re.findall(r"\w+", found[1].lower())) if found else set()


judge = dm.models.FakeChat(judge_words, model="stand-in")
