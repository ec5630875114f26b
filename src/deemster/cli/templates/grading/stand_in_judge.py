"""A stand-in for a judge model, so that the suite runs offline. It looks for words and understands nothing."""

import re

import deemster as dm

# By a word of the requirement: what the stand-in looks for in the submission.
SIGNS = {"greeting": r"dear|hello|good morning", "return period": r"\d+ days", "blames": r"your fault"}


def judge_signs(ask: dm.records.Ask) -> dict:
    """The reply of the stand-in on one criterion; it cannot assess a requirement that it does not know."""
    text = ask.messages[-1].content
    requirement = text.partition("The requirement:\n")[2].partition("\n")[0]
    submission = text.partition("The submission to be judged:\n")[2]
    sign = next((pattern for word, pattern in SIGNS.items() if word in requirement), None)
    if sign is None:
        return {"reason": "Stand-in: it does not know this requirement.", "verdict": "CANNOT_ASSESS"}
    found = re.search(sign, submission, re.IGNORECASE)
    reason = f"Stand-in: {found[0]!r} is in the reply." if found else "Stand-in: nothing of the kind is in the reply."
    return {"reason": reason, "verdict": "MET" if found else "UNMET"}


judge = dm.models.FakeChat(judge_signs, model="stand-in")
