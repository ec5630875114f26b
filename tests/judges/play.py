"""Plays judges by hand: a script, its replies, and its requests."""

from __future__ import annotations

import json

from deemster.records import Answer, NoAnswer, Output, Sample, Usage

QUESTION = "What is the capital of France?"
SAMPLE = Sample("s", {"question": QUESTION}, "Paris", {})
OUTPUT = Output("It is Paris.")
DOWN = NoAnswer(cause="model_failed", message="The server answered 500.")


def said(text=None, *, model="m-1", usage=None, tokens=None, finish=None, **entries):
    """An answer: the text given, else the entries as JSON."""
    text = json.dumps(entries) if text is None else text
    return Answer(text=text, model=model, usage=usage, tokens=tokens, finish=finish)


def scored(score, reason="Because.", **more):
    return said(reason=reason, score=score, **more)


def used(tokens):
    return Usage(prompt_tokens=tokens, completion_tokens=1)


def play(script, *rounds):
    """The mark a script ends with, and the rounds of requests it made; it must use up all the replies."""
    asked = []
    left = list(rounds)
    try:
        requests = next(script)
        while True:
            asked.append(list(requests))
            assert left, f"asked {len(asked)} times, but there are replies for {len(rounds)} rounds"
            requests = script.send(left.pop(0))
    except StopIteration as stop:
        assert not left, f"{len(left)} rounds of replies were never asked for"
        return stop.value, asked


def answered(script, reply):
    """The mark when a function answers every request, and all requests."""
    asked = []
    try:
        requests = next(script)
        while True:
            asked += requests
            requests = script.send([reply(request) for request in requests])
    except StopIteration as stop:
        return stop.value, asked
