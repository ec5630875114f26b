"""Hypothesis strategies: samples, outputs, datasets and votes of every shape."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from deemster.datasets import Dataset, Votes
from deemster.records import Output, Sample

# Texts that programs read wrongly most often: nothing, blanks, halves of JSON, numbers that are none, other scripts.
_AWKWARD = ("", " ", "\n", "[1, 2", "NaN", "42", '{"a": 1}', "ﬁ Straße", "日本語", "e\u0301", "\u202eabc", "🙂" * 3)
_SCALE = ("poor", "fair", "good")


def samples() -> SearchStrategy[Sample]:
    """Samples with any text as input and expected output, tags, and metadata of any JSON."""
    tags = st.lists(st.sampled_from(["easy", "hard", "billing"]), max_size=2, unique=True)
    metadata = st.tuples(st.dictionaries(_names(), json_values(), max_size=2), tags).map(
        lambda parts: {**parts[0], "tags": parts[1]}
    )
    return st.builds(
        Sample,
        _names(),
        st.dictionaries(_names(), texts(), min_size=1, max_size=2),
        st.none() | texts() | json_values(),
        metadata,
    )


def outputs() -> SearchStrategy[Output]:
    """Outputs with any text, with and without retrieved passages."""
    passages = st.lists(st.fixed_dictionaries({"id": _names(), "text": texts()}), max_size=3)
    return st.builds(Output, texts(), retrieved=st.none() | passages)


def datasets() -> SearchStrategy[Dataset]:
    """Datasets of up to four samples, whose ids are unique."""
    rows = st.lists(samples(), min_size=1, max_size=4, unique_by=lambda sample: sample.id)
    return rows.map(lambda found: Dataset(found, name="drawn"))


def votes() -> SearchStrategy[Votes]:
    """Votes of one to three judges on a criterion of yes or no and on a scale, with truth and failed votes."""
    choices = (st.sampled_from(["MET", "UNMET"]), st.sampled_from(_SCALE))
    labels = st.tuples(*choices)
    cells = st.tuples(*(one | st.none() | st.sampled_from(["CANNOT_ASSESS", {"failure": "parse"}]) for one in choices))

    @st.composite
    def draw_votes(draw: DrawFn) -> Votes:
        judges = [f"judge-{number}" for number in range(draw(st.integers(1, 3)))]
        items: list[dict[str, Any]] = []
        for number in range(draw(st.integers(1, 6))):
            # The first item is whole: nothing can be compared where none has a truth and a vote.
            cast = labels if number == 0 else cells
            item: dict[str, Any] = {"id": f"item-{number}", "votes": {judge: [*draw(cast)] for judge in judges}}
            if number == 0 or draw(st.booleans()):
                item["ground_truth"] = [*draw(labels)]
            items.append(item)
        scale = [{"label": label, "value": place / 2} for place, label in enumerate(_SCALE)]
        facts = {"name": "facts", "weight": 2, "requirement": "Every claim is true."}
        depth = {"name": "depth", "weight": 1, "requirement": "How deep?", "scale_type": "ordinal", "options": scale}
        return Votes.parse(
            {
                "schema_version": "deemster.votes.v1",
                "rubric": {"criteria": [facts, depth]},
                "judges": [{"id": judge} for judge in judges],
                "items": items,
            }
        )

    return draw_votes()


def texts() -> SearchStrategy[str]:
    """Any text, and often one that programs read wrongly: blanks, halves of JSON, other scripts."""
    return st.sampled_from(_AWKWARD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def json_values() -> SearchStrategy[Any]:
    """Any JSON value."""
    numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        st.none() | st.booleans() | numbers | texts(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names(), inner, max_size=3),
        max_leaves=6,
    )


def _names() -> SearchStrategy[str]:
    """Names of keys and samples: short, and not blank."""
    return st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=8)
