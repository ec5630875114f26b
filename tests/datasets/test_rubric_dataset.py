from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.datasets import RubricDataset, RubricItem, Submission, Votes, with_ground_truth
from deemster.datasets.fingerprint import number_text, rfc8785
from deemster.errors import DatasetError
from deemster.rubrics.rubric_definition import Rubric
from tests.datasets import bad_votes as mistakes

RUBRIC = {
    "guidelines": "Be strict.",
    "criteria": [
        {"name": "facts", "requirement": "Every claim is supported."},
        {
            "name": "depth",
            "requirement": "How deep is it?",
            "options": [{"label": "poor", "value": 0}, {"label": "fair", "value": 0.5}, {"label": "good", "value": 1}],
        },
    ],
}
OWN = Rubric.load([{"name": "short", "requirement": "It is short."}])
ITEMS = [
    {
        "id": "e1",
        "submission": "It rained.",
        "description": "weather",
        "prompt": "Tell me of yesterday.",
        "reference_submission": "It rained all day.",
        "ground_truth": ["met", " GOOD"],
        "ground_truth_reasons": ["It did.", None],
        "annotations": {"ann": ["MET", "good"], "bob": [None, "CANNOT_ASSESS"]},
        "tags": ["weather", "short text"],
        "metadata": {"author": "x", "words": 2, "share": 0.5, "new": True, "by": None},
    },
    {"submission": {"thinking": "Hm.", "output": "It snowed: é ☃ \u2028."}},
    {"id": "e3", "submission": "", "rubric": OWN.to_dict(), "ground_truth": ["MET"]},
]


def essays(items=ITEMS, **facts):
    given = {"name": "essays", "prompt": "Write.", "rubric": RUBRIC, "reference_submission": "Well written."}
    return RubricDataset(items, **{**given, **facts})


def test_labels_take_spelling_of_rubric_and_missing_ids_are_generated():
    dataset = essays()
    assert [item.id for item in dataset] == ["e1", "item-0002", "e3"]
    assert dataset[0].ground_truth == ("MET", "good")
    assert dataset[0].annotations == {"ann": ("MET", "good"), "bob": (None, "CANNOT_ASSESS")}
    assert dataset[1].submission == Submission("It snowed: é ☃ \u2028.", "Hm.")
    assert dataset[0].tags == ("weather", "short text")


def test_rubric_of_item_replaces_rubric_of_dataset():
    dataset = essays()
    assert dataset.rubrics[0] == Rubric.load(RUBRIC)
    assert dataset.rubrics[2] == OWN
    assert dataset.rubrics[2].guidelines is None


def test_dataset_of_items_equals_dataset_of_maps():
    items = [
        RubricItem("It rained.", ground_truth=("MET", None), tags=("a",), metadata={"doc": 1}),
        RubricItem(Submission("x", "Hm."), id="own", rubric=OWN, annotations={"ann": ("MET",)}),
    ]
    maps = [
        {"submission": "It rained.", "ground_truth": ["MET", None], "tags": ["a"], "metadata": {"doc": 1}},
        {
            "id": "own",
            "submission": {"output": "x", "thinking": "Hm."},
            "rubric": OWN.to_dict(),
            "annotations": {"ann": ["MET"]},
        },
    ]
    assert essays(items) == essays(maps)


def test_all_invalid_labels_are_listed_at_construction():
    items = [RubricItem("a", ground_truth=("MAYBE", "fiar")), RubricItem("b", annotations={"ann": ("MET", "bad")})]
    with pytest.raises(DatasetError) as caught:
        essays(items)
    assert [fault.sample for fault in caught.value.issues] == ["item-0001", "item-0001", "item-0002"]
    assert "Did you mean `fair`?" in str(caught.value)


def test_ground_truth_is_stated_or_consensus_of_annotators():
    items = [
        {"submission": "a", "ground_truth": ["UNMET", None], "annotations": {"x": ["MET", "good"]}},
        {"submission": "b", "annotations": {"x": ["MET", "good"], "y": ["UNMET", "good"], "z": ["MET", None]}},
        {"submission": "c", "annotations": {"x": ["MET", "good"], "y": ["UNMET", "fair"]}},
        {"submission": "d"},
    ]
    assert essays(items).truths == (("UNMET", None), ("MET", "good"), (None, None), None)


@pytest.mark.parametrize("suffix", ["json", "jsonl", "yaml"])
def test_dataset_and_its_bytes_round_trip(suffix, tmp_path):
    dataset = essays()
    first, second = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    dataset.save(first)
    assert RubricDataset.load(first) == RubricDataset.from_file(first) == dataset
    assert RubricDataset.load(first).fingerprint == dataset.fingerprint
    RubricDataset.load(first).save(second)
    assert second.read_bytes() == first.read_bytes()


def test_jsonl_without_header_needs_rubric_in_every_item(tmp_path):
    row = {"submission": "x", "rubric": OWN.to_dict()}
    (tmp_path / "essays.jsonl").write_text(json.dumps(row) + "\n\n" + json.dumps(row) + "\n", encoding="utf-8")
    dataset = RubricDataset.load(tmp_path / "essays.jsonl")
    assert [item.id for item in dataset] == ["item-0001", "item-0002"]
    assert (dataset.name, dataset.rubric) == (None, None)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
SCALAR = st.one_of(TEXT, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none())
LABELS = st.tuples(
    st.sampled_from(["MET", "UNMET", "CANNOT_ASSESS", None]),
    st.sampled_from(["poor", "fair", "good", "CANNOT_ASSESS", None]),
)
ITEM = st.builds(
    RubricItem,
    st.one_of(TEXT, st.builds(Submission, TEXT, st.one_of(st.none(), TEXT))),
    description=st.one_of(st.none(), TEXT),
    prompt=st.one_of(st.none(), TEXT),
    reference_submission=st.one_of(st.none(), TEXT),
    ground_truth=st.one_of(st.none(), LABELS),
    ground_truth_reasons=st.one_of(st.none(), st.tuples(st.one_of(st.none(), TEXT), TEXT)),
    annotations=st.dictionaries(TEXT.filter(str.strip), LABELS, max_size=3),
    tags=st.lists(TEXT.filter(str.strip), max_size=3, unique=True).map(tuple),
    metadata=st.dictionaries(TEXT, SCALAR, max_size=3),
)


@given(st.lists(ITEM, min_size=1, max_size=3), st.sampled_from(["json", "jsonl", "yaml"]))
def test_any_dataset_round_trips(tmp_path_factory, items, suffix):
    path = tmp_path_factory.mktemp("round") / f"essays.{suffix}"
    dataset = essays(items)
    dataset.save(path)
    assert RubricDataset.load(path) == dataset
    assert RubricDataset(dataset.items, **{key: getattr(dataset, key) for key in
                         ("name", "prompt", "rubric", "reference_submission")}) == dataset  # fmt: skip


SEEN = [
    {"prompt": "Other."},
    {"reference_submission": "Other."},
    {"rubric": OWN.to_dict(), "ground_truth": ["MET"], "annotations": {}},
    {"submission": "Other."},
]
UNSEEN = [
    {"ground_truth": ["UNMET", "good"]},
    {"annotations": {"ann": ["MET", "good"]}},
    {"tags": ["other"]},
    {"metadata": {"other": 1}},
]


@pytest.mark.parametrize("change", SEEN, ids=lambda change: next(iter(change)))
def test_content_visible_to_judges_changes_both_fingerprints(change):
    one, other = essays(ITEMS[:1]), essays([{**ITEMS[0], "ground_truth_reasons": None, **change}])
    assert one.grading_fingerprint("e1") != other.grading_fingerprint("e1")
    assert one.fingerprint != other.fingerprint


@pytest.mark.parametrize("change", UNSEEN, ids=lambda change: next(iter(change)))
def test_content_hidden_from_judges_changes_only_dataset_fingerprint(change):
    one, other = essays(ITEMS[:1]), essays([{**ITEMS[0], **change}])
    assert one.grading_fingerprint(one[0]) == other.grading_fingerprint(other[0])
    assert one.fingerprint != other.fingerprint


def test_order_of_items_and_keys_changes_no_fingerprint():
    items = [{**item, "id": name} for item, name in zip(ITEMS, "abc", strict=True)]
    turned = [dict(reversed(item.items())) for item in reversed(items)]
    assert essays(items).fingerprint == essays(turned).fingerprint


def test_item_without_prompt_uses_prompt_of_dataset():
    assert essays(prompt="Other.").grading_fingerprint("e3") != essays().grading_fingerprint("e3")
    assert essays(prompt="Other.").grading_fingerprint("e1") == essays().grading_fingerprint("e1")


def test_fingerprint_of_foreign_item_is_error():
    with pytest.raises(DatasetError, match="There is no item `e9`"):
        essays().grading_fingerprint("e9")


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("ffefffffffffffff", "-1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("c340000000000000", "-9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555554", "333333333.33333325"),
        ("41b3de4355555555", "333333333.3333333"),
        ("41b3de4355555556", "333333333.3333334"),
        ("41b3de4355555557", "333333333.33333343"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_numbers_are_written_as_the_appendix_of_rfc_8785_has_them(bits, text):
    assert number_text(struct.unpack(">d", bytes.fromhex(bits))[0]) == text


def test_first_example_of_rfc_8785_has_its_canonical_form():
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"\u002f",
        "literals": [None, True, False],
    }
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert rfc8785(value) == expected.encode()


def test_keys_are_sorted_as_the_example_of_rfc_8785_sorts_them():
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    ordered = json.loads(rfc8785(dict.fromkeys(names, 0)))
    assert list(ordered) == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_canonical_number_is_read_back_as_itself(number):
    assert float(number_text(number)) == number


@pytest.mark.parametrize("mistake", mistakes.RUBRIC_DATASETS, ids=lambda mistake: mistake.name)
def test_bad_rubric_dataset_is_error(mistake, tmp_path):
    path = tmp_path / mistake.file
    path.write_text(mistake.text, encoding="utf-8")
    with pytest.raises(DatasetError):
        RubricDataset.load(path)


def test_all_issues_of_rubric_dataset_have_lines(golden, folder):
    pages = []
    for mistake in mistakes.RUBRIC_DATASETS:
        (folder / mistake.file).write_text(mistake.text, encoding="utf-8")
        with pytest.raises(DatasetError) as caught:
            RubricDataset.load(mistake.file)
        pages.append(f"## {mistake.name}\n{caught.value}\n")
    golden("dataset/rubric_dataset.txt", "\n".join(pages))


def test_unwritable_path_is_error(tmp_path):
    with pytest.raises(DatasetError, match="cannot be written"):
        essays().save(tmp_path / "none" / "essays.json")
    with pytest.raises(DatasetError, match="Known formats: `json`, `yaml`, `jsonl`"):
        essays().save(tmp_path / "essays.csv")


def test_dataset_has_repr_and_map():
    dataset = essays()
    assert repr(dataset) == "<RubricDataset 'essays': 3 items>"
    assert dataset != "a dataset"
    held = dataset.to_dict()
    items = held.pop("items")
    assert held.pop("schema_version") == "deemster.rubric_dataset.v1"
    assert RubricDataset(items, **held) == dataset


def test_item_without_rubric_is_error_with_its_id(tmp_path):
    rubric = {"criteria": [{"name": "a", "requirement": "It is so."}]}
    items = [{"id": "one", "submission": "x", "rubric": rubric}, {"id": "two", "submission": "y"}]
    path = tmp_path / "mixed.json"
    path.write_text(json.dumps({"items": items}), encoding="utf-8")
    with pytest.raises(DatasetError) as caught:
        RubricDataset.load(path)
    (fault,) = caught.value.issues
    assert (fault.sample, fault.message) == ("two", "There is no rubric: neither the item nor the dataset has one.")


GRADE = {
    "criteria": [{"name": "grade", "requirement": "How good?", "minimum": 0, "maximum": 3}, {"requirement": "Ok?"}]
}


@pytest.mark.parametrize("suffix", ["json", "yaml", "jsonl"])
def test_numbers_and_plain_words_are_labels_and_round_trip(tmp_path, suffix):
    items = [
        {"submission": f"{place}", "ground_truth": [place % 4, place % 2 == 0], "annotations": {"x": [0.5, "no"]}}
        for place in range(12)
    ]
    items.append(
        {"submission": "more", "annotations": {"x": [1, 1], "y": ["2.5", "yes"], "z": ["CANNOT_ASSESS", None]}}
    )
    dataset = RubricDataset(items, rubric=GRADE)
    assert dataset.items[1].ground_truth == (1.0, "UNMET")
    assert dataset.truths[-1] == (1.75, "MET")
    dataset.save(tmp_path / f"d.{suffix}")
    again = RubricDataset.load(tmp_path / f"d.{suffix}")
    assert (again, again.fingerprint) == (dataset, dataset.fingerprint)
    first, rest = dataset.split(6)
    assert (len(first), len(rest)) == (6, 7)


def test_number_outside_the_range_is_an_issue_with_its_place(tmp_path):
    path = tmp_path / "d.yaml"
    path.write_text("rubric: [{name: grade, requirement: Good?, minimum: 0, maximum: 3}]\nitems:\n"
                    "- submission: a\n  ground_truth: [4]\n- submission: b\n  annotations: {x: [good]}\n")  # fmt: skip
    with pytest.raises(DatasetError) as caught:
        RubricDataset.load(path)
    assert [issue.where.rpartition("/")[2] for issue in caught.value.issues] == ["d.yaml:4", "d.yaml:6"]
    assert "It takes a number from 0 to 3" in str(caught.value)


@pytest.mark.parametrize("suffix", ["json", "yaml", "jsonl"])
def test_cluster_and_sampling_are_declared_once_and_reach_the_votes(tmp_path, suffix):
    items = [{"submission": str(n), "metadata": {"doc": n // 3}, "ground_truth": ["MET"]} for n in range(6)]
    made = RubricDataset(
        items, rubric=[{"name": "ok", "requirement": "It is right."}], cluster="doc", sampling="chosen"
    )
    made.save(tmp_path / f"d.{suffix}")
    assert RubricDataset.load(tmp_path / f"d.{suffix}") == made
    assert made.split(3)[0].cluster == "doc"
    cast = {"id": "item-0001", "votes": {"judge": ["MET"]}, "metadata": {"doc": 0}}
    header = {"schema_version": "deemster.votes.v1", "rubric": made.rubric.to_dict(), "judges": [{"id": "judge"}]}
    joined = with_ground_truth(Votes.parse(header | {"items": [cast]}), made)
    assert (joined.cluster, joined.sampling) == ("doc", "chosen")


def test_item_without_its_cluster_is_an_issue():
    with pytest.raises(DatasetError, match=r"it has no `metadata\.doc`, by which items are clustered"):
        RubricDataset([{"submission": "a"}], rubric=[{"name": "ok", "requirement": "It is right."}], cluster="doc")
