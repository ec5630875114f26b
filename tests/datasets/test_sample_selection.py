"""A part of a dataset: which samples are selected, what it knows of the whole, and how misspelt words are answered."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deemster as dm
from deemster.datasets import SelectedPart
from deemster.errors import DatasetError


def sample(number, **metadata):
    return {"id": f"q{number}", "input": {"question": f"{number}?", "lang": "en"}, "expected_output": "x"} | {
        "metadata": {"tags": ["even" if number % 2 == 0 else "odd"], "lang": "de" if number < 4 else "fr", **metadata}
    }


@pytest.fixture(scope="module")
def dataset():
    return dm.Dataset(
        [sample(number, level=number, is_hard=number == 7, author={"team": "a b"}) for number in range(10)],
        name="numbers",
    )


def ids(part):
    return [entry.id for entry in part]


@pytest.mark.parametrize(
    ("wanted", "expected", "flags"),
    [
        ({"tags": "even"}, "q0 q2 q4 q6 q8", "--only tag:even"),
        ({"tags": ["even"], "ids": ["q[0-3]"]}, "q0 q2", "--only tag:even --only 'id:q[0-3]'"),
        ({"ids": ["q9", "q1*"]}, "q1 q9", "--only id:q9 --only 'id:q1*'"),
        ({"where": {"metadata.lang": "de"}}, "q0 q1 q2 q3", "--only lang=de"),
        (
            {"where": {"metadata.level": ["3", 4]}},
            "q3 q4",
            "--only level=3 --only level=4",
        ),
        ({"where": {"metadata.is_hard": "true"}}, "q7", "--only is_hard=true"),
        ({"where": {"metadata.level": 1}}, "q1", "--only level=1"),
        ({"where": {"metadata.author.team": "a b", "input.question": "5?"}}, "q5", None),
        ({"where": {"metadata.tags": "odd"}, "limit": 2}, "q1 q3", "--only tags=odd --limit 2"),
        ({"limit": 3}, "q0 q1 q2", "--limit 3"),
    ],
)
def test_selection_keeps_fitting_samples_in_file_order(dataset, wanted, expected, flags):
    part = dataset.select(**wanted)
    assert ids(part) == expected.split()
    assert (part.part.samples, part.part.of) == (len(expected.split()), 10)
    assert flags in (None, part.part.selection)


def test_part_is_a_dataset_of_its_own_that_knows_the_whole(dataset):
    part = dataset.select(tags="even")
    alone = dm.Dataset(list(part), name="numbers")
    assert (part.fingerprint, list(part.row_hashes)) == (alone.fingerprint, list(alone.row_hashes))
    assert part.whole is dataset
    assert part[1].id == "q2"
    assert (dataset.part, dataset.whole, len(dataset)) == (None, dataset, 10)
    assert repr(part) == "<Dataset 'numbers': 5 of 10 samples>"


def test_part_of_a_part_says_both_selections(dataset):
    part = dataset.select(tags="even").select(limit=2)
    assert part.part == SelectedPart(samples=2, of=10, selection="--only tag:even --limit 2")
    assert part.whole is dataset


def test_selection_of_everything_is_the_whole_dataset(dataset):
    assert dataset.select(ids="q*") is dataset
    assert dataset.select(sample=99) is dataset
    assert dataset.select() is dataset


def test_part_of_jsonl_reads_like_one_in_memory(tmp_path, dataset):
    path = tmp_path / "numbers.jsonl"
    dataset.save(path)
    part = dm.Dataset.load(path).select(tags="odd", where={"metadata.lang": "fr"})
    assert ids(part) == ["q5", "q7", "q9"]
    assert part.fingerprint == dataset.select(tags="odd", where={"metadata.lang": "fr"}).fingerprint


def test_duplicates_of_a_part_are_those_inside_it():
    twins = [sample(1) | {"id": name} for name in ("a", "b", "c")]
    dataset = dm.Dataset(twins, name="twins")
    assert dataset.duplicates == [["a", "b", "c"]]
    assert dataset.select(ids=["a", "c"]).duplicates == [["a", "c"]]
    assert dataset.select(limit=1).duplicates == []


def test_id_with_glob_characters_means_itself():
    dataset = dm.Dataset([sample(1) | {"id": name} for name in ("q[1]", "q1", "q2")], name="odd names")
    assert ids(dataset.select(ids="q[1]")) == ["q[1]", "q1"]
    assert ids(dataset.keep({"q[1]"}, selection="--only failed:x")) == ["q[1]"]


@given(st.integers(0, 9), st.integers(1, 10), st.integers(1, 10))
def test_draw_is_the_same_for_a_seed_and_grows_with_its_size(seed, fewer, more):
    dataset = dm.Dataset([sample(number) for number in range(10)], name="numbers")
    fewer, more = sorted((fewer, more))
    small, large = dataset.select(sample=fewer, seed=seed), dataset.select(sample=more, seed=seed)
    assert len(small) == fewer
    assert set(ids(small)) <= set(ids(large))
    assert ids(small) == ids(dataset.select(sample=fewer, seed=seed))


def test_draws_are_fair():
    dataset = dm.Dataset([sample(number) for number in range(10)], name="numbers")
    counts = dict.fromkeys(ids(dataset), 0)
    for seed in range(400):
        for name in ids(dataset.select(sample=3, seed=seed)):
            counts[name] += 1
    # 400 draws of 3 in 10: 120 each, with a standard deviation of about 9.
    assert all(84 < count < 156 for count in counts.values())


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"tags": ["evn", "odd"]}, "No sample has the tag `evn`. Did you mean `even`?"),
        ({"ids": ["q11"]}, "No sample has the id `q11`. Did you mean `q1`?"),
        ({"ids": ["p*"]}, "No sample matches `p*`. Known: `q0`, `q1`,"),
        ({"where": {"metadata.lng": "de"}}, "No sample has `metadata.lng`. Did you mean `metadata.lang`?"),
        ({"where": {"metadata.lang": "dee"}}, "No sample has `dee` as its `metadata.lang`. Did you mean `de`?"),
        ({"where": {"lang": "de"}}, "`where` names a key such as `metadata.lang` or `input.lang`, not `lang`."),
        ({"tags": "even", "ids": "q1"}, "No sample fits all of `--only tag:even --only id:q1`."),
        ({"sample": 0}, "`sample` is a whole number of at least 1, not 0."),
        ({"limit": True}, "`limit` is a whole number of at least 1, not True."),
        ({"sample": 2, "seed": -1}, "`seed` is a whole number of at least 0, not -1."),
        ({"sample": 2, "limit": 2}, "`sample` draws samples at random and `limit` takes the first: give one of the"),
    ],
)
def test_empty_or_impossible_selection_is_an_error_that_names_the_nearest(dataset, wanted, message):
    with pytest.raises(DatasetError) as caught:
        dataset.select(**wanted)
    assert message in str(caught.value)


def test_every_misspelt_word_is_named(dataset):
    with pytest.raises(DatasetError) as caught:
        dataset.select(tags=["evn", "od"], ids=["q1", "qq1"])
    assert len(caught.value.issues) == 3


def test_truth_value_is_no_number(dataset):
    with pytest.raises(DatasetError, match="No sample has `1` as its"):
        dataset.select(where={"metadata.is_hard": 1})


def test_dataset_without_tags_says_so():
    with pytest.raises(DatasetError, match="No sample has a tag"):
        dm.Dataset([{"id": "a", "input": {}, "expected_output": None}], name="bare").select(tags="x")


def test_long_selection_is_cut_where_it_is_described():
    part = SelectedPart(samples=1, of=2, selection=json.dumps(["--id"] * 99))
    assert len(part.describe()) < 240
