import re
from pathlib import Path

import pytest

from deemster.agreement import compute_metrics
from deemster.datasets import RubricDataset, Votes
from tests.agreement.make_votes import votes_value
from tests.agreement.test_compute_agreement import FACTS, codes

MORE = FACTS | {"name": "more"}
CLEAN = [
    {"id": f"i{n:02d}", "ground_truth": [true, other], "votes": {"a": [true, "MET"]}}
    for n, (true, other) in enumerate(zip(["MET", "UNMET", "MET"] * 14, ["MET", "UNMET"] * 21, strict=True))
]
CLUSTERS = {f"i{n:02d}": n for n in range(42)}


def plain_items(count, **more):
    return [{"id": f"i{n:02d}", "ground_truth": ["MET"], "votes": {"a": ["MET"]}} | more for n in range(count)]


def warned(items, criteria=(FACTS,), **more):
    return codes(compute_metrics(Votes.parse(votes_value(items, criteria, judges=("a",))), None, **more))


def test_clean_input_has_no_warning():
    assert warned(CLEAN, (FACTS, MORE)) == []
    assert warned(CLEAN, (FACTS, MORE), cluster=CLUSTERS) == []


@pytest.mark.parametrize(
    ("code", "items", "criteria"),
    [
        ("no-truth", [*CLEAN, {"id": "x", "votes": {"a": ["MET", "MET"]}}], (FACTS, MORE)),
        ("errored-items", [*CLEAN, {"id": "x", "ground_truth": ["MET", "MET"], "error": "down"}], (FACTS, MORE)),
        (
            "failed-cells",
            [*CLEAN, {"id": "x", "ground_truth": ["MET", "MET"], "votes": {"a": ["MET", {"failure": "parse"}]}}],
            (FACTS, MORE),
        ),
        ("score-collapse", plain_items(3), (FACTS,)),
        ("degenerate", plain_items(3), (FACTS,)),
        ("no-scores", plain_items(1, votes={"a": ["CANNOT_ASSESS"]}), (FACTS,)),
        ("one-item", plain_items(1), (FACTS,)),
        ("constant-shift", plain_items(3, votes={"a": ["UNMET"]}), (FACTS,)),
        (
            "no-consensus",
            [
                *CLEAN,
                {
                    "id": "x",
                    "annotations": {"ann": ["MET", "MET"], "bob": ["UNMET", "MET"]},
                    "votes": {"a": ["MET", "MET"]},
                },
            ],
            (FACTS, MORE),
        ),
        ("recorded-final", [*CLEAN, CLEAN[0] | {"id": "x", "final": ["UNMET", "MET"]}], (FACTS, MORE)),
        ("recorded-final", [*CLEAN, CLEAN[0] | {"id": "x", "score": 0.25}], (FACTS, MORE)),
    ],
)
def test_each_condition_gives_warning_with_its_code(code, items, criteria):
    assert code in warned(items, criteria)


def test_few_clusters_are_warning():
    few = {name: place % 39 for name, place in CLUSTERS.items()}
    assert warned(CLEAN, (FACTS, MORE), cluster=few) == ["few-clusters"]
    enough = {name: place % 40 for name, place in CLUSTERS.items()}
    assert warned(CLEAN, (FACTS, MORE), cluster=enough) == []


def test_criteria_without_kappa_are_named():
    result = compute_metrics(Votes.parse(votes_value(plain_items(3), [FACTS], judges=("a",))), None)
    assert "degenerate: one class only, so no kappa, on `facts`." in result.warnings


def test_items_of_only_one_input_are_warning():
    dataset = RubricDataset(
        [{"id": name, "submission": "s", "ground_truth": ["MET"]} for name in ("i0", "i9")],
        prompt="p",
        rubric={"criteria": [FACTS]},
    )
    items = [{"id": f"i{n}", "votes": {"a": ["MET"]}} for n in range(2)]
    result = compute_metrics(Votes.parse(votes_value(items, [FACTS], judges=("a",))), dataset)
    assert codes(result)[:2] == ["missing-items", "extra-items"]
    assert "`i9`" in result.warnings[0]
    assert "`i1`" in result.warnings[1]
    assert result.n_items == 1


def test_inputs_without_common_item_are_error():
    dataset = RubricDataset(
        [{"id": "z", "submission": "s", "ground_truth": ["MET"]}], prompt="p", rubric={"criteria": [FACTS]}
    )
    items = [{"id": "i0", "votes": {"a": ["MET"]}}]
    with pytest.raises(ValueError, match="no item in common"):
        compute_metrics(Votes.parse(votes_value(items, [FACTS], judges=("a",))), dataset)


def test_judge_without_a_usable_vote_is_named():
    items = plain_items(3, votes={"a": ["MET"], "b": [{"failure": "parse"}]})
    result = compute_metrics(Votes.parse(votes_value(items, [FACTS], judges=("a", "b"))), None, per_judge=True)
    assert "judge-silent: `b` has no usable vote." in result.warnings
    assert sum(warning.startswith("judge-silent") for warning in result.warnings) == 1
    silent = result.per_judge["b"]
    assert (silent.n_samples, silent.n_failed, silent.criterion_accuracy, silent.score_rmse) == (0, 3, None, None)
    assert silent.confusion_matrix is None


def test_recorded_final_overrides_votes():
    items = plain_items(2, final=["UNMET"])
    result = compute_metrics(Votes.parse(votes_value(items, [FACTS], judges=("a",))), None, per_judge=True)
    assert result.criterion_accuracy == 0.0
    assert result.per_judge["a"].criterion_accuracy == 1.0


def test_labels_of_dataset_override_votes_with_warning():
    words = [["MET", "MET"], ["UNMET", "UNMET"], [None, None], ["MET", None]]
    dataset = RubricDataset(
        [{"id": f"i{n}", "submission": "s", "ground_truth": word} for n, word in enumerate(words)],
        prompt="p",
        rubric={"criteria": [FACTS, MORE]},
    )
    items = [{"id": f"i{n}", "ground_truth": ["MET", "MET"], "votes": {"a": ["MET", "MET"]}} for n in range(4)]
    result = compute_metrics(Votes.parse(votes_value(items, [FACTS, MORE], judges=("a",))), dataset)
    assert (
        "other-truth: 3 labels of the votes on 2 items differ from the dataset: `i1`, `i3`; "
        "those of the dataset are used." in result.warnings
    )
    assert [one.n_samples for one in result.per_criterion] == [4, 3]
    assert result.criterion_accuracy == 5 / 7


def test_ground_truth_of_only_nulls_is_unlabelled():
    items = [
        {"id": "i0", "ground_truth": ["MET", None], "votes": {"a": ["MET", "MET"]}},
        {"id": "i1", "ground_truth": [None, None], "votes": {"a": ["MET", "MET"]}},
    ]
    votes = Votes.parse(votes_value(items, [FACTS, MORE], judges=("a",)))
    result = compute_metrics(votes)
    assert result.n_items == 1
    assert "no-truth: 1 item without ground truth left out." in result.warnings
    labelled = [{"id": "i1", "submission": "s", "annotations": {"ann": ["UNMET", "MET"]}}]
    dataset = RubricDataset(labelled, prompt="p", rubric={"criteria": [FACTS, MORE]})
    joined = compute_metrics(votes, dataset)
    assert [one.support_true for one in joined.per_criterion] == [0, 1]
    assert joined.criterion_accuracy == 0.5


def test_every_warning_is_explained_in_the_reference():
    root = Path(__file__).parent.parent.parent
    names = ("_vote_warnings.py", "_item_clusters.py", "_build_result.py")
    sources = "".join((root / "src/deemster/agreement" / name).read_text() for name in names)
    page = (root / "docs/reference/files.md").read_text(encoding="utf-8")
    section = page.partition("### Warnings")[2].partition("\n#")[0]
    told = re.findall(r"^\| `([a-z-]+)` \|", section, flags=re.MULTILINE)
    assert sorted(told) == sorted(set(re.findall(r'"([a-z]+(?:-[a-z]+)*): ', sources)))
