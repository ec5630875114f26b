"""A help desk that answers from a handbook, with five bugs planted in it."""

from __future__ import annotations

import re

from deemster.records import Output

# The fourth bug: the window was 30 days since the spring.
HANDBOOK = {
    "ret-1": "You can return shoes within 14 days. They must be unworn.",
    "ret-2": "We refund you within 5 working days.",
    "ship-1": "Shipping costs 5 euros. It is free above 50 euros.",
    "ship-2": "Delivery takes 3 working days.",
    "size-44": "Size 44 is 28 cm long.",
    "size-45": "Size 45 is 29 cm long.",
}
TOPICS = {"return": "ret-1", "refund": "ret-2", "shipping": "ship-1", "delivery": "ship-2", "size": "size-44"}


def answer(question: dict[str, str]) -> Output:
    """What the handbook says about the question."""
    # The fifth bug: digits are dropped, so every size is the first one.
    words = re.findall(r"[a-z]+", question["question"].lower())
    topic = next((word for word in words if word in TOPICS), words[-1])
    # The first bug: a topic that the handbook lacks raises KeyError.
    passage = TOPICS[topic]

    # The second bug: only the first sentence is said; the third: the currency is the wrong one.
    text = HANDBOOK[passage].split(". ")[0].rstrip(".") + "."
    return Output(text.replace("euros", "dollars"), retrieved=[{"id": passage, "text": HANDBOOK[passage]}])
