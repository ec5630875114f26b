"""`docs/reference/alignment.md` tells every field of a result of agreement, and every column of its data frame.

Types and meanings come from the models. What a mode changes and what can be undefined is measured on examples.
"""

from __future__ import annotations

import inspect
import random
import re
import types
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
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

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "alignment.md"
BEGIN, END = "<!-- fields: begin -->\n", "<!-- fields: end -->\n"
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


def type_name(hint: Any) -> str:
    """A type as it is written in Python."""
    if hint is types.NoneType:
        return "None"
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(f'"{value}"' for value in typing.get_args(hint))
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return " | ".join(type_name(part) for part in typing.get_args(hint))
    if typing.get_args(hint):
        inner = ", ".join("..." if part is ... else type_name(part) for part in typing.get_args(hint))
        return f"{hint.__origin__.__name__}[{inner}]"
    return hint.__name__


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
    """Pairs in both orders, which three people labelled; the second judge says nothing about any."""
    items = []
    for place in range(64):
        said, other = ("MET", "UNMET") if place % 3 else ("UNMET", "MET")
        people = {"annotations": {who: [said if place % (5 + at) else other] for at, who in enumerate(PEOPLE)}}
        cell = [said if place < 60 else "CANNOT_ASSESS"]
        items.append({"id": f"q{place}", "metadata": {"pair": place // 2}, "votes": {"a": cell}} | people)
    items.append({"id": "r", "ground_truth": ["MET"], "votes": {"a": ["MET"], "b": ["MET"]}})
    return votes_value(items, criteria=(FACTS,), judges="ab")


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
# A scale has no place for an abstention: where it is a category, the votes have no scale.
EXAMPLES = (
    *((example(seed, *CRITERIA), ("as_unmet",)) for seed in range(4)),
    *((example(seed, FACTS, TONE, mixed=True), ("as_unmet", "as_category")) for seed in range(4)),
    ({**one_class(), "sampling": "random"}, ("as_unmet",)),
    (unlabelled_abstentions(), ("as_unmet",)),
    (nothing_counts(), ()),
    (swapped_pairs(), ("as_unmet", "as_category")),
    (numbers(), ("as_unmet",)),
    (one_judge(GRADE, 2.5, 4, labelled=30, bare=0, wrong=3), ()),
    (one_judge(FACTS, "MET", "UNMET", labelled=40, bare=40, wrong=2), ()),
    (one_judge(FACTS, "MET", "UNMET", labelled=40, bare=0, wrong=2), ()),
    (one_judge(TONE, "curt", "warm", labelled=1, bare=1, wrong=0), ()),
)


def results(value: dict[str, Any], **modes: str) -> Iterator[MetricsResult | JudgeComparison]:
    votes = Votes.parse(value)
    known = {"pair": "pair", "text": "group", "by": "system"}
    keys = {argument: key for key, argument in known.items() if key in votes.metadata[0]}
    yield compute_metrics(
        votes, per_judge=True, per_slice=True, bootstrap=BootstrapSettings(replicates=20), **keys, **modes
    )
    if len(votes.judges) > 1:
        yield compare_judges(votes, None, "a", "b", bootstrap=BootstrapSettings(replicates=20), **modes)


def walk(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Field, tuple[Any, ...], Any]]:
    """Every field inside a value, its path and what it holds; of models only whether there are any."""
    if isinstance(value, msgspec.Struct):
        for name, hint in hints(type(value)).items():
            try:
                held = getattr(value, name)
            except ValueError:
                continue
            inside = any(True for _ in parts(hint))
            yield (type(value), name), (*path, name), held if held is None or not inside else "models"
            yield from walk(held, (*path, name))
    elif isinstance(value, dict | tuple):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from walk(inner, (*path, key))


@cache
def measured_modes() -> dict[Field, str]:
    """Which mode changes a field anywhere in the examples."""
    found: dict[Field, set[str]] = {}
    for value, modes in EXAMPLES:
        plain = {path: (field, held) for field, path, held in walk(tuple(results(value)))}
        for field, _ in plain.values():
            found.setdefault(field, set())
        for setting in ("cannot_assess", "na_mode"):
            for mode in modes:
                other = {path: held for _, path, held in walk(tuple(results(value, **{setting: mode})))}
                for path, (field, held) in plain.items():
                    if "coverage_stats" in path:
                        assert path not in other or other[path] is None
                        found[field].add("exclude")
                    elif path in other and other[path] != held:
                        found[field].add(setting)
    return {field: mode_text(changing) for field, changing in found.items()}


def mode_text(changing: set[str]) -> str:
    if changing == {"exclude"}:
        return "only with both `exclude`"
    names = sorted(changing - {"exclude"})
    return " and ".join(f"`{name}`" for name in names) or "the same"


def table(model: type[msgspec.Struct]) -> str:
    """The fields of one model."""
    rows = []
    for name, hint in hints(model).items():
        meaning, undefined = split_meaning(model, name)
        assert (model, name) in measured_modes(), f"`{model.__name__}.{name}` is in no example of this file; add one."
        undefined = undefined.removeprefix("None ").replace("Never None", "never").removesuffix(".") or "never"
        by_mode = measured_modes()[model, name]
        if by_mode == "the same" and any(True for _ in parts(hint)):
            by_mode = "see its fields"
        cells = (f"`{name}`", f"`{type_name(hint)}`", meaning, undefined, by_mode)
        rows.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |\n")
    head = inspect.cleandoc(model.__doc__).partition("\n")[0]
    titles = "| field | type | meaning | None | by mode |\n|---|---|---|---|---|\n"
    return f"### {model.__name__}\n\n{head}\n\n{titles}{''.join(rows)}\n"


def criterion_cell(column: str) -> str:
    """The fields of criteria behind a column, with their kinds where not all have it."""
    kinds: dict[str, list[str]] = {}
    for model, fields in _result_dataframe.CRITERION_FIELDS.items():
        if column in fields:
            kinds.setdefault(fields[column], []).append(model.__struct_config__.tag)
    every = len(_result_dataframe.CRITERION_FIELDS)
    return ", ".join(
        f"`{field}`" if len(of) == every else f"`{field}` ({', '.join(of)})" for field, of in kinds.items()
    )


def columns() -> str:
    """The columns of the data frame, with the field behind each of them."""
    frame = _result_dataframe
    rows = ["| `level` | object | `aggregate` | `criterion` | `judge` | `slice` |\n"]
    for column in frame.COLUMNS[1:]:
        whole = "`all`" if column == "criterion_type" else ""
        one, *others = (
            f"`{fields[column]}`" if column in fields else whole
            for fields in (frame.AGGREGATE_FIELDS | {"name": "overall"}, frame.JUDGE_FIELDS, frame.SLICE_FIELDS)
        )
        cells = (f"`{column}`", frame.column_type(column), one, criterion_cell(column), *others)
        rows.append(f"| {' | '.join(cells)} |\n")
    titles = "| column | type | aggregate | criterion | judge | slice |\n|---|---|---|---|---|---|\n"
    return f"## The columns of the data frame\n\n{titles}{''.join(rows)}\n"


def test_page_tells_every_field_and_column(refresh_golden):
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    listing = f"## The fields\n\n{''.join(map(table, models()))}{columns()}"
    fresh = f"{head}{BEGIN}\n{listing}{END}{tail}"
    if refresh_golden:
        PAGE.write_text(fresh, encoding="utf-8")
    assert refresh_golden or text == fresh, (
        "Refresh the page with `pytest tests/test_alignment_reference.py --refresh-golden`."
    )


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
    for value, _ in EXAMPLES:
        votes = Votes.parse(value)
        plain = compute_metrics(votes, bootstrap=BootstrapSettings(replicates=0), cannot_assess="as_unmet")
        without_intervals = compute_metrics(
            votes, bootstrap=BootstrapSettings(replicates=0), per_judge=True, per_slice=True
        )
        for field, _, held in walk((*results(value), plain, without_intervals)):
            seen.setdefault(field, set()).add(held is None)
    wrong = []
    for model in models():
        for name in hints(model):
            undefined = split_meaning(model, name)[1]
            always = not undefined or undefined.startswith(("Never", "None in files of earlier versions"))
            expected = {False} if always else {True, False}
            if undefined.startswith("None in every result"):
                expected = {True}
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
