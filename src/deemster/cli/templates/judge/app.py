"""The application under test: replace `answer` by a call of yours."""


def answer(input: dict) -> str:
    """Answer one question; it may also be `async`, and may return a `deemster.Output`."""
    known = {
        "When are you open?": "We are open from 9 to 17, Monday to Friday.",
        "How long do I have to return it?": "You have 30 days to return it.",
    }
    return known.get(input["question"], "I do not know.")
