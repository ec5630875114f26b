"""The target `acme-support`: the application under test."""

import deemster as dm

_ANSWERS = {
    "When are you open?": "We are open from 9 to 17. You are welcome!",
    "Where is my parcel?": "Sorry, it is late. Please give us one more day.",
}


async def answer(input: dict) -> dm.Output:
    """Answer one question. A target gets the input of a sample and nothing else; it may be sync or async."""
    text = _ANSWERS.get(input["question"], "No idea.")
    return dm.Output(text, usage=dm.Usage(calls=1, prompt_tokens=len(input["question"]), completion_tokens=len(text)))
