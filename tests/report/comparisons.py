"""Comparisons of small runs, and what a hostile model writes."""

from __future__ import annotations

import functools
import tempfile

import deemster as dm
from tests.builders.arguments import arguments
from tests.report.runs import CLOCK

TOPICS = ("refunds", "shipping")
HOSTILE = (
    "<script>alert(1)</script>",
    "</code></details><img src=x onerror=alert(1)>",
    "@everyone #1 [link](javascript:alert(1)) https://evil.example www.evil.example",
    "```\n# heading\n```\n| a | b |",
    "::error::x ##vso[task.complete]x",
    "a\x1b[31mb\u202ec<!-- deemster -->",
    "]]>'\"&amp;",
)


def evaluated(answers, *, expected=None, tags=None, metrics=("exact-match", "rouge-l"), name="support", **options):
    """The report of a run that gave these answers; what is expected is `right` unless it is given."""
    expected, tags = expected or {}, tags or {}
    samples = [
        dm.Sample(key, {"question": f"What of {key}?"}, expected.get(key, "right"), {"tags": list(tags.get(key, ()))})
        for key in answers
    ]
    dataset = dm.Dataset(samples, name=name)
    return dm.evaluate(dataset, outputs=answers, metrics=list(metrics), **arguments(clock=CLOCK, **options))


def compared(before, after, *, margin=None, confidence=0.95, **options):
    """The comparison of two stored runs that gave these answers."""
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/runs.db"
        runs = [evaluated(given, where=store, **options).run.id for given in (before, after)]
        return dm.compare(*runs, store=store, margin=margin, confidence=confidence)


@functools.cache
def helpdesk():
    """Forty samples: two break, one is fixed, one gets worse and still fails, one is added, one removed."""
    ids = [f"{TOPICS[place % 2]}-{place:02d}" for place in range(40)]
    expected = {key: f"It takes {place + 3} days to get the money back." for place, key in enumerate(ids)}
    tags = {key: [key.partition("-")[0]] for key in ids}
    before = dict(expected)
    before[ids[4]] = "It takes long to get the money back."
    before[ids[5]] = "It takes 80 days to get the money back."
    after = dict(before)
    after[ids[0]] = "It takes 30 days to get the money back."
    after[ids[1]] = "Ask the help desk."
    after[ids[4]] = expected[ids[4]]
    after[ids[5]] = "Nobody knows."
    del before[ids[38]], after[ids[39]]
    return compared(before, after, expected=expected, tags=tags)


@functools.cache
def hostile():
    """Samples whose ids, tags, questions, expected and given answers are attacks."""
    # An id and a tag hold no control character: a dataset refuses them.
    ids = [f"{place} {''.join(filter(str.isprintable, text))}" for place, text in enumerate(HOSTILE)]
    tags = {key: [f"tag {key}"] for key in ids}
    expected = {key: f"expected {HOSTILE[place]}" for place, key in enumerate(ids)}
    after = {key: f"expected not {HOSTILE[place]}" for place, key in enumerate(ids)}
    return compared(expected, after, expected=expected, tags=tags, name="<b>name</b>")
