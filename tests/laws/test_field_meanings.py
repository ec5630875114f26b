"""The docstrings of the results of agreement say of every field what it means, and when it is None.

What can be undefined is measured on examples.
"""

from __future__ import annotations

import inspect
import random
import re
import types
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import pytest

from deemster.agreement import (
    BootstrapSettings,
    JudgeComparison,
    MetricsResult,
    _result_dataframe,
    compare_judges,
    compute_metrics,
)
from deemster.datasets import Votes
from tests.agreement.make_votes import CRITERIA, FACTS, FLAW, JUDGES, PADDING, PEOPLE, TONE, labels_of, votes_value

ROOTS = (MetricsResult, JudgeComparison)
UNDEFINED = re.compile(r"(?:^|(?<=[.] ))(?:None|Never None)\b")
Field: typing.TypeAlias = tuple[type, str]


def parts(hint: Any) -> Iterator[type[msgspec.Struct]]:
    """The models inside a type, in the order of its text."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
    for inner in typing.get_args(hint):
        yield from parts(inner)


@cache
def hints(model: type[msgspec.Struct]) -> dict[str, Any]:
    """The type of every field and every property of a model."""
    types_of_fields = typing.get_type_hints(model)
    found = {field.name: types_of_fields[field.name] for field in msgspec.structs.fields(model)}
    for owner in model.__mro__:
        for name, member in vars(owner).items():
            if isinstance(member, property):
                found[name] = typing.get_type_hints(member.fget)["return"]
    return found


def models() -> list[type[msgspec.Struct]]:
    """The roots, and every model that can be reached from them, outer ones first."""
    found: list[type[msgspec.Struct]] = list(ROOTS)
    for model in found:
        for hint in hints(model).values():
            found += [part for part in dict.fromkeys(parts(hint)) if part not in found]
    return found


@cache
def meanings(model: type) -> dict[str, str]:
    """What the docstring of a model, or of the model it builds on, says of each field."""
    found = {} if model.__base__ is object else dict(meanings(model.__base__))
    text = inspect.cleandoc(model.__doc__ or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    for line in re.sub(r"\n {8}", " ", text).splitlines():
        name, _, meaning = line.strip().partition(": ")
        found[name] = meaning
    properties = {name: member for name, member in vars(model).items() if isinstance(member, property)}
    return found | {name: inspect.getdoc(member).partition("\n")[0] for name, member in properties.items()}


def split_meaning(model: type, name: str) -> tuple[str, str]:
    """What a field means, and the sentence that says when it is None."""
    text = meanings(model).get(name)
    assert text, f"`{model.__name__}.{name}` has no meaning: add it to the `Attributes` of the docstring."
    undefined = UNDEFINED.search(text)
    assert (undefined is not None) == (types.NoneType in typing.get_args(hints(model)[name])), (
        f"`{model.__name__}.{name}` and its type differ: a sentence that begins with `None` says when it is None."
    )
    place = undefined.start() if undefined else len(text)
    return text[:place].strip(), text[place:]


def example(seed: int, *criteria: dict[str, Any], mixed: bool = False) -> dict[str, Any]:
    """Votes with everything that a field can tell: people, repeats, failures, probabilities, tags, bare items."""
    rng = random.Random(seed)

    def answer(criterion: dict[str, Any], truth: str) -> str:
        return truth if rng.random() < 0.7 else rng.choice([*labels_of(criterion), "CANNOT_ASSESS"])

    items = []
    for number in range(30):
        truth = [answer(criterion, rng.choice(labels_of(criterion))) for criterion in criteria]
        rows = {who: [answer(*pair) for pair in zip(criteria, truth, strict=True)] for who in (*JUDGES, *PEOPLE)}
        item: dict[str, Any] = {"id": f"q{number}", "tags": [f"t{number % 2}"], **({"rubric": "main"} if mixed else {})}
        if number % 3:
            item["final"] = rows["cy"]
        votes: dict[str, list[Any]] = {judge: list(rows[judge]) for judge in JUDGES}
        for judge in "ac":
            if votes[judge][0] == "MET":
                votes[judge][0] = {"verdict": "MET", "p": 0.6 + 0.4 * rng.random()}
        if number % 4 == 3:
            votes["a"][0] = {"failure": "parse"}
        votes["b"][0] = [rows["b"][0], rows["c"][0]]
        votes["b"][-1] = [rows["b"][-1], rows["c"][-1]]
        if votes["c"][-1] != "CANNOT_ASSESS":
            votes["c"][-1] = {"verdict": votes["c"][-1], "p": rng.choice([[0.5, 0.25, 0.25], [0.55, 0.25, 0.2]])}
        labels = {"annotations": {who: rows[who] for who in PEOPLE[: 2 + number % 2]}} if number % 5 else {}
        items.append(item | {"votes": votes} | ({} if number % 7 == 6 else labels or {"ground_truth": truth}))
    if not mixed:
        return votes_value(items, criteria=criteria)
    items.append({"id": "z", "rubric": "other", "ground_truth": ["MET"], "votes": {"a": ["MET"], "b": ["UNMET"]}})
    rubrics = {"main": {"criteria": list(criteria)}, "other": {"criteria": [PADDING]}}
    value = votes_value(items) | {"rubrics": rubrics}
    del value["rubric"]
    return value


def one_class() -> dict[str, Any]:
    """Judges and people say one thing or nothing, so what nothing counts as decides everything."""
    said = ["MET", "UNMET", "none", "curt"]
    rows = [said, said, ["CANNOT_ASSESS"] * 4, said, ["CANNOT_ASSESS"] * 4]
    items = [
        {
            "id": f"q{place}",
            "tags": ["t"],
            "ground_truth": row,
            "votes": {"a": row, "b": [[cell, cell] for cell in row]},
        }
        for place, row in enumerate(rows)
    ]
    items.append({"id": "q9", "votes": {"a": said}})
    return votes_value(items, criteria=(FACTS, PADDING, FLAW, TONE), judges="ab")


def unlabelled_abstentions() -> dict[str, Any]:
    """A judge that abstains where people gave no label: counted as UNMET, its rate contradicts its errors."""
    labelled = [("MET", "MET")] * 20 + [("UNMET", "UNMET")] * 14 + [("UNMET", "MET")] * 6
    items = [
        {"id": f"q{place}", "ground_truth": [truth], "votes": {"a": [said]}}
        for place, (truth, said) in enumerate(labelled)
    ]
    others = ["UNMET"] * 40 + ["CANNOT_ASSESS"] * 40
    items += [{"id": f"u{place}", "votes": {"a": [said]}} for place, said in enumerate(others)]
    return votes_value(items, criteria=(FACTS,), judges="a")


def nothing_counts() -> dict[str, Any]:
    """Two items with different rubrics, on which everything is left out or unlabelled, and one without a label."""
    silent = ["CANNOT_ASSESS"] * len(CRITERIA)
    people = {"ann": [*silent[:-1], None], "bob": [*silent[:-1], None]}
    labelled = {"annotations": people, "votes": {"a": silent, "b": [None] * len(CRITERIA)}}
    other = {"ground_truth": ["CANNOT_ASSESS"], "votes": {"a": ["CANNOT_ASSESS"]}}
    items = [
        {"id": "q1", "rubric": "main", "tags": ["t"]} | labelled,
        {"id": "q2", "rubric": "other"} | other,
        {"id": "q3", "rubric": "main", "votes": {"a": silent}},
    ]
    value = votes_value(items, judges="ab")
    main, short = value.pop("rubric"), {"criteria": [{**FACTS, "requirement": "Is it true?"}]}
    return value | {"rubrics": {"main": main, "other": short}}


def swapped_pairs() -> dict[str, Any]:
    """Pairs in both orders, which three people labelled; the second judge says nothing about any. Costs are known."""
    items = []
    for place in range(64):
        said, other = ("MET", "UNMET") if place % 3 else ("UNMET", "MET")
        people = {"annotations": {who: [said if place % (5 + at) else other] for at, who in enumerate(PEOPLE)}}
        cell = [said if place < 60 else "CANNOT_ASSESS"]
        items.append({"id": f"q{place}", "metadata": {"pair": place // 2}, "votes": {"a": cell}} | people)
    items.append({"id": "r", "ground_truth": ["MET"], "votes": {"a": ["MET"], "b": ["MET"]}})
    judges = [{"id": judge, "cost_usd": 1} for judge in "ab"]
    return votes_value(items, criteria=(FACTS,)) | {"judges": judges}


def numbers() -> dict[str, Any]:
    """Numeric criteria: grades with a gap, a range that nobody answers, and one that everyone answers alike."""
    criteria = [
        {"name": name, "requirement": f"How {name} is it?", "minimum": 1, "maximum": 5}
        for name in ("good", "long", "even")
    ]
    rng, items = random.Random(5), []
    for place in range(40):
        truth = rng.uniform(1.5, 4.5)
        grades = [[max(1.0, min(5.0, truth + rng.gauss(0, 0.4))), "CANNOT_ASSESS", 3] for _ in range(4)]
        if place % 5 == 4:
            grades[0][0] = grades[2][0] = "CANNOT_ASSESS"
        row = {"id": f"q{place:02d}", "tags": ["t"], "metadata": {"text": place % 8, "by": place // 8}}
        people = dict(zip(PEOPLE, grades[1:], strict=True)) if place % 3 else {}
        labels = {"annotations": people} if people else {"ground_truth": grades[1]}
        items.append(row | labels | {"votes": {"a": grades[0], "b": grades[3]}})
    return votes_value(items, criteria=criteria, judges="ab")


def one_judge(criterion: dict[str, Any], *labels: str | float, labelled: int, bare: int, wrong: int) -> dict[str, Any]:
    """A judge that errs on the first items; the last ones have no label."""
    items = []
    for place in range(labelled + bare):
        said, other = labels[place % 2], labels[1 - place % 2]
        truth = {"ground_truth": [said]} if place < labelled else {}
        items.append({"id": f"q{place}", "votes": {"a": [other if place < wrong else said]}} | truth)
    return votes_value(items, criteria=(criterion,), judges="a", grading={"normalize": labelled > 1})


GRADE = {"name": "grade", "requirement": "How good is it?", "minimum": 1, "maximum": 5}
EXAMPLES = (
    *(example(seed, *CRITERIA) for seed in range(4)),
    *(example(seed, FACTS, TONE, mixed=True) for seed in range(4)),
    {**one_class(), "sampling": "random"},
    unlabelled_abstentions(),
    nothing_counts(),
    swapped_pairs(),
    numbers(),
    one_judge(GRADE, 2.5, 4, labelled=30, bare=0, wrong=3),
    one_judge(FACTS, "MET", "UNMET", labelled=40, bare=40, wrong=2),
    one_judge(FACTS, "MET", "UNMET", labelled=40, bare=0, wrong=2),
    one_judge(TONE, "curt", "warm", labelled=1, bare=1, wrong=0),
)


def results(value: dict[str, Any]) -> Iterator[MetricsResult | JudgeComparison]:
    votes = Votes.parse(value)
    known = {"pair": "pair", "text": "group", "by": "system"}
    keys = {argument: key for key, argument in known.items() if key in votes.metadata[0]}
    yield compute_metrics(votes, per_judge=True, per_slice=True, bootstrap=BootstrapSettings(replicates=20), **keys)
    if len(votes.judges) > 1:
        yield compare_judges(votes, None, "a", "b", bootstrap=BootstrapSettings(replicates=20))


def walk(value: Any) -> Iterator[tuple[Field, bool]]:
    """Every field inside a value, and whether it holds something."""
    if isinstance(value, msgspec.Struct):
        for name in hints(type(value)):
            try:
                held = getattr(value, name)
            except ValueError:
                continue
            yield (type(value), name), held is not None
            yield from walk(held)
    elif isinstance(value, dict | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from walk(inner)


class Undocumented(msgspec.Struct):
    """A model whose author forgot what its readers ask.

    Attributes:
        told: What it is.
        vague: It may be missing, and nothing says when.
        stale: What it is. None where it was undefined once.
    """

    told: int
    vague: float | None
    stale: float
    new: int


def test_field_with_a_whole_meaning_is_accepted():
    assert split_meaning(Undocumented, "told") == ("What it is.", "")


@pytest.mark.parametrize(("name", "complaint"), [("new", "no meaning"), ("vague", "differ"), ("stale", "differ")])
def test_field_without_a_whole_meaning_is_refused(name, complaint):
    with pytest.raises(AssertionError, match=complaint):
        split_meaning(Undocumented, name)


def test_fields_that_may_be_undefined_are_seen_both_ways():
    seen: dict[Field, set[bool]] = {}
    for value in EXAMPLES:
        votes = Votes.parse(value)
        plain = compute_metrics(votes, bootstrap=BootstrapSettings(replicates=0), cannot_assess="as_unmet")
        without_intervals = compute_metrics(
            votes, bootstrap=BootstrapSettings(replicates=0), per_judge=True, per_slice=True
        )
        for field, is_defined in walk((*results(value), plain, without_intervals)):
            seen.setdefault(field, set()).add(is_defined)
    wrong = []
    for model in models():
        for name in hints(model):
            undefined = split_meaning(model, name)[1]
            always = not undefined or undefined.startswith(("Never", "None in files of earlier versions"))
            expected = {True} if always else {True, False}
            if undefined.startswith("None in every result"):
                expected = {False}
            if seen[model, name] != expected:
                wrong.append(f"{model.__name__}.{name}: {undefined or 'always there'}")
    assert not wrong, "\n".join(wrong)


def test_every_column_stands_for_a_field_that_exists():
    frame = _result_dataframe
    levels = {MetricsResult: frame.AGGREGATE_FIELDS, **frame.CRITERION_FIELDS}
    for model, fields in levels.items():
        assert set(fields) <= set(frame.COLUMNS)
        for field in fields.values():
            first, _, inner = field.partition(".")
            assert first in hints(model)
            assert not inner or any(inner in hints(part) for part in parts(hints(model)[first]))
    filled = {column for fields in levels.values() for column in fields}
    assert filled | {"level", "name"} >= set(frame.COLUMNS)
