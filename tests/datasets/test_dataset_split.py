from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.datasets import RubricDataset
from deemster.datasets._dataset_split import subset_sums
from deemster.errors import DatasetError

RUBRIC = [
    {"name": "facts", "requirement": "r"},
    {
        "name": "depth",
        "requirement": "r",
        "options": [{"label": "poor", "value": 0}, {"label": "fair", "value": 0.5}, {"label": "good", "value": 1}],
    },
]


def essays(count, *, seed=0, clusters=None):
    draw = random.Random(seed)
    items = []
    for at in range(count):
        truth = [draw.choice(["MET"] * 9 + ["UNMET"]), draw.choice(["poor", "fair", "fair", "good"])]
        item = {"id": f"e{at:04d}", "submission": str(at), "ground_truth": truth}
        items.append({**item, "metadata": {"doc": draw.randrange(clusters)}} if clusters else item)
    return RubricDataset(items, rubric=RUBRIC, name="essays")


def ids(dataset):
    return [item.id for item in dataset]


def labels(dataset):
    return Counter(pair for truth in dataset.truths for pair in enumerate(truth))


@pytest.mark.parametrize(
    ("train", "size"), [(100, 100), (1, 1), (249, 249), (0.2, 50), (0.5, 125), (0.001, 1), (0.999, 249)]
)
@pytest.mark.parametrize("stratify", [True, False])
def test_first_part_has_exactly_given_size(train, size, stratify):
    dataset = essays(250)
    first, rest = dataset.split(train, stratify=stratify)
    assert (len(first), len(rest)) == (size, 250 - size)
    assert sorted(ids(first) + ids(rest)) == ids(dataset)


def test_parts_keep_the_order_of_the_file_and_the_facts_of_the_dataset():
    first, rest = essays(40).split(0.5)
    assert ids(first) == sorted(ids(first))
    assert ids(rest) == sorted(ids(rest))
    assert (first.name, first.rubric) == ("essays", rest.rubric)


@pytest.mark.parametrize("seed", range(5))
def test_both_parts_hold_each_label_in_proportion(seed):
    dataset = essays(200, seed=seed)
    first, _ = dataset.split(0.3, seed=seed)
    for pair, count in labels(dataset).items():
        assert abs(labels(first)[pair] - 0.3 * count) <= 1.5, pair


def test_rarest_label_is_in_both_parts():
    items = [
        {"id": f"e{at}", "submission": "x", "ground_truth": ["UNMET" if at < 2 else "MET", "good"]} for at in range(40)
    ]
    dataset = RubricDataset(items, rubric=RUBRIC)
    for seed in range(10):
        first, rest = dataset.split(0.5, seed=seed)
        assert labels(first)[0, "UNMET"] == labels(rest)[0, "UNMET"] == 1


def test_same_seed_gives_same_parts_in_any_item_order():
    dataset = essays(60, clusters=20)
    turned = RubricDataset(tuple(reversed(dataset.items)), rubric=dataset.rubric)
    for options in ({}, {"stratify": False}, {"cluster": "doc"}):
        first, again, other = (part.split(20, **options)[0] for part in (dataset, dataset, turned))
        assert sorted(ids(first)) == sorted(ids(again)) == sorted(ids(other))


def test_another_seed_gives_other_parts():
    dataset = essays(60)
    for stratify in (True, False):
        found = {tuple(ids(dataset.split(20, seed=seed, stratify=stratify)[0])) for seed in range(6)}
        assert len(found) == 6


def test_without_strata_every_item_is_as_likely_as_any_other():
    dataset = essays(10)
    drawn = Counter(name for seed in range(600) for name in ids(dataset.split(3, stratify=False, seed=seed)[0]))
    # 600 draws of 3 in 10: 180 expected, standard deviation 11.2.
    assert all(130 < drawn[name] < 230 for name in ids(dataset))


@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=24).filter(lambda docs: len(set(docs)) > 1),
    st.integers(1, 23),
    st.booleans(),
)
def test_no_cluster_is_split_and_size_is_nearest_possible(docs, train, stratify):
    items = [
        {"submission": "x", "ground_truth": ["MET", "good" if at % 3 else "poor"], "metadata": {"doc": doc}}
        for at, doc in enumerate(docs)
    ]
    dataset = RubricDataset(items, rubric=RUBRIC)
    train = min(train, len(docs) - 1)
    first, rest = dataset.split(train, cluster="doc", stratify=stratify)
    assert not {item.metadata["doc"] for item in first} & {item.metadata["doc"] for item in rest}
    sizes = list(Counter(docs).values())
    sums = {sum(part) for count in range(1, len(sizes)) for part in itertools.combinations(sizes, count)}
    assert len(first) == min(sums, key=lambda total: (abs(total - train), total))


def test_clusters_may_be_given_by_id():
    dataset = essays(12)
    clusters = {name: at // 3 for at, name in enumerate(ids(dataset))}
    first, rest = dataset.split(6, cluster=clusters)
    assert not {clusters[name] for name in ids(first)} & {clusters[name] for name in ids(rest)}
    assert len(first) == 6


@given(st.dictionaries(st.integers(1, 6), st.integers(0, 4), max_size=4))
def test_subset_sums_equal_exhaustive_search(sizes):
    every = [size for size, count in sizes.items() for _ in range(count)]
    expected = {sum(part) for count in range(len(every) + 1) for part in itertools.combinations(every, count)}
    found = subset_sums(sizes)
    assert {total for total in range(sum(every) + 2) if found >> total & 1} == expected


@pytest.mark.parametrize("train", [0, 10, -1, 11, 0.0, 1.0, 1.5, True, "3", None, float("nan")])
def test_size_that_leaves_empty_part_is_error(train):
    with pytest.raises(DatasetError, match="train is a number of items from 1 to 9, or a share between 0 and 1, not"):
        essays(10).split(train)


@pytest.mark.parametrize("seed", [-1, 1.5, "x", None, True])
def test_invalid_seed_is_error(seed):
    with pytest.raises(DatasetError, match="seed is a whole number from 0 on, not"):
        essays(10).split(3, seed=seed)


def test_stratifying_by_missing_label_is_error():
    items = [{"id": f"e{at}", "submission": "x", "ground_truth": [None, None] if at else None} for at in range(3)]
    dataset = RubricDataset(items, rubric=RUBRIC)
    with pytest.raises(DatasetError, match="use stratify=False") as caught:
        dataset.split(1)
    assert [fault.sample for fault in caught.value.issues] == ["e0", "e1", "e2"]
    assert len(dataset.split(1, stratify=False)[0]) == 1


def test_item_without_cluster_is_error():
    with pytest.raises(DatasetError, match="sample `e0000`: The item belongs to no cluster: its metadata has no `doc`"):
        essays(3).split(1, cluster="doc")
    with pytest.raises(DatasetError, match="it is not named"):
        essays(3).split(1, cluster={"e0000": 1})


def test_indivisible_dataset_is_error():
    with pytest.raises(DatasetError, match="A dataset of one item"):
        essays(1).split(1)
    with pytest.raises(DatasetError, match="All items belong to one cluster"):
        essays(3, clusters=1).split(1, cluster="doc")
