"""Alignment, derivation and scoring against autorubric, field by field, in every combination of modes.

Every field of autorubric's result is compared. Where ours differs on purpose, a line of DIFFERENCES says why, when, and
what stands there instead; so a field that differs for any other reason fails.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest

from deemster.agreement import BootstrapSettings, compute_metrics
from deemster.datasets import Votes, derive
from deemster.errors import InputError
from deemster.rubrics.criterion import FAILED, FAILED_WORST
from tests.differential.autorubric.cases import votes_file
from tests.differential.autorubric.differences import ROWS, WEIGHTLESS, WRONG
from tests.differential.autorubric.facts import Column, Facts, mean
from tests.differential.peers import approx

pytestmark = pytest.mark.xdist_group("autorubric")
MODES = ("exclude", "as_unmet", "as_category")
CALLS = [
    {"cannot_assess": cannot, "na_mode": na, "per_judge": per_judge}
    for cannot, na, per_judge in itertools.product(MODES, MODES, (True, False))
    # Judges change nothing else, so a call without them for each mode is enough.
    if per_judge or cannot == na
]
# Two of them have numbers on the edge of a word, the last one scores that are tied but for rounding.
SEEDS = (*range(22), 115, 117, 409)
ANYTHING = object()
NO_CORRELATION = {
    "coefficient": None,
    "p_value": None,
    "ci": None,
    "interpretation": "insufficient data",
    "n_samples": 0,
}
UNSEEN = {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support_true": 0, "support_pred": 0}
NO_BIAS = {
    "mean_bias": None,
    "std_bias": None,
    "is_significant": False,
    "p_value": None,
    "direction": "none",
    "effect_size": None,
    "ci": None,
    "n_samples": 0,
}


class Place(NamedTuple):
    """The place of a field: its path, the object of autorubric that holds it, and the facts of the call."""

    path: str
    holder: dict
    facts: Facts

    @property
    def judge(self) -> str | None:
        return match[1] if (match := re.match(r"per_judge\.(\w+)\.", self.path)) else None

    @property
    def column(self) -> Column:
        return self.facts.columns[int(re.match(r"per_criterion\.(\d+)", self.path)[1])]

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


def support(place: Place) -> tuple[int, int]:
    """How often truth and the other side are positive, in what `place` counts."""
    if "support_true" in place.holder:
        return place.holder["support_true"], place.holder["support_pred"]
    return place.facts.met(place.judge)


def zero_over_zero(place: Place) -> bool:
    true, said = support(place)
    return {"precision": said, "recall": true, "f1": true + said}[place.name.removeprefix("criterion_")] == 0


EDGES = (0.0, 0.21, 0.41, 0.61, 0.81, 0.3, 0.5, 0.7, 0.9)


def on_an_edge(place: Place) -> bool:
    """Whether the number that is put into words lies where one word ends and the next begins."""
    names = ("coefficient", "kappa", "weighted_kappa", "na_kappa", "ca_kappa")
    numbers = [place.holder[name] for name in names if place.holder.get(name) is not None]
    return any(abs(abs(number) - edge) < 1e-9 for number in numbers for edge in EDGES)


def classes(place: Place) -> Any:
    """The numbers of autorubric for each option that the mode keeps."""
    held, holder = place.column.classes, place.holder
    if place.name == "n_options":
        return len(held)
    if place.name == "per_option":
        told = {one["index"]: one for one in holder["per_option"]}
        return [told.get(index, UNSEEN | {"label": label, "index": index}) for index, label in held]
    if not holder["n_samples"]:
        return {"matrix": [[0] * len(held)] * len(held), "labels": [label for _, label in held]}
    matrix = holder["confusion_matrix"]["matrix"]
    counts = [[matrix[i][j] if max(i, j) < len(matrix) else 0 for j, _ in held] for i, _ in held]
    return {"matrix": counts, "labels": [label for _, label in held]}


class Difference(NamedTuple):
    fields: str
    reason: str
    applies: Callable[[Place], bool]
    ours: Callable[[Place], Any]


DIFFERENCES = (
    Difference(
        r"(.*\.)?(criterion_)?(precision|recall|f1)",
        "0/0 is undefined, not 0",
        zero_over_zero,
        lambda _: None,
    ),
    Difference(
        r"(per_judge\.\w+\.)?criterion_accuracy",
        "autorubric counts binary criteria only, or abstentions that were excluded; ours pools all pairs of the mode",
        lambda place: any(column.kind != "binary" for column in place.facts.columns),
        lambda place: place.facts.accuracy(place.judge),
    ),
    Difference(
        r"per_criterion\.\d+\.(weighted_kappa|kappa_interpretation)",
        "autorubric takes the classes seen for the whole scale, so unseen ones shrink distances",
        lambda place: place.column.spread(place.column.final),
        lambda place: place.column.kappa(place.column.final) if place.name == "weighted_kappa" else ANYTHING,
    ),
    Difference(
        r"(per_judge\.\w+\.)?mean_kappa",
        "it averages weighted kappas, which have the full scale here",
        lambda place: place.facts.uneven(place.judge),
        lambda place: place.facts.mean_kappa(place.judge),
    ),
    Difference(
        r"per_criterion\.\d+\.(n_options|per_option|confusion_matrix)",
        "ours lists the classes of the mode, also without a pair; autorubric lists an NA option that no pair can reach",
        lambda place: place.column.kind != "binary",
        classes,
    ),
    Difference(
        r"per_criterion\.\d+\.adjacent_accuracy",
        "autorubric counts an NA option between two options as a step of the scale",
        lambda place: place.column.own_na,
        lambda place: place.column.adjacent,
    ),
    Difference(
        r"per_criterion\.\d+\.krippendorff_alpha",
        "an NA vote follows the mode here, where autorubric ranks it among the options; one unit is too few",
        lambda place: place.column.na_voted or place.column.pairable < 2,
        lambda place: place.column.alpha,
    ),
    Difference(
        r"mean_krippendorff_alpha",
        "it averages these alphas",
        lambda place: any(column.na_voted or column.pairable < 2 for column in place.facts.columns),
        lambda place: mean([column.alpha for column in place.facts.columns]),
    ),
    Difference(
        r"per_criterion\.\d+\.fleiss_kappa",
        "an NA vote follows the mode here, where autorubric counts its author's NA option in every mode",
        lambda place: place.column.na_voted,
        lambda place: place.column.fleiss,
    ),
    Difference(
        r".*interpretation",
        "rounding decides on which side of an edge a number lies",
        on_an_edge,
        lambda _: ANYTHING,
    ),
    Difference(
        r"(na|cannot_assess)_stats\.(na|ca)_kappa_interpretation",
        "an undefined kappa has no words",
        lambda place: place.holder[place.name] is None,
        lambda _: None,
    ),
    Difference(
        r"(.*\.)?(score_)?spearman\.p_value",
        "up to nine pairs the p-value is exact, over all orders; autorubric takes Student's t, which says 0 for three",
        lambda place: place.holder["coefficient"] is not None and place.holder["n_samples"] <= 9,
        lambda _: ANYTHING,
    ),
    Difference(
        r"(.*\.)?score_(spearman|kendall)\.(coefficient|p_value)",
        "scores that are equal but for their last bits are ties here; there a last bit decides which is higher",
        lambda place: place.facts.nearly_tied(place.judge),
        lambda place: place.facts.rank_correlation(place.judge, *place.path.removeprefix("score_").split(".")[-2:]),
    ),
    Difference(
        r"(.*\.)?bias\.(std_bias|p_value|effect_size|is_significant|ci)",
        "no test of differences that are all one number",
        lambda place: place.facts.shift(place.judge),
        lambda place: {"std_bias": 0.0, "is_significant": False}.get(place.name),
    ),
    Difference(
        r"per_judge\.\w+\.(score_(spearman|kendall|pearson)|bias)",
        "without a pair of scores, autorubric has no object; ours has one that says so",
        lambda place: not len(place.facts.scores(place.judge)),
        lambda place: NO_BIAS if place.name == "bias" else NO_CORRELATION | {"method": place.name[6:]},
    ),
    Difference(
        r".*(spearman|kendall|pearson)\.ci",
        "autorubric gives correlations no interval",
        lambda _: True,
        lambda _: ANYTHING,
    ),
    Difference(
        r"per_judge\.\w+\.(coverage|n_pairs)",
        "a cascade of judges has no counterpart here",
        lambda _: True,
        lambda _: ANYTHING,
    ),
    Difference(
        r"warnings",
        "worded differently; their codes are compared in a test of their own",
        lambda _: True,
        lambda _: ANYTHING,
    ),
)


def expected(place: Place, value: Any) -> Any:
    """What ours should hold where autorubric holds `value`."""
    for difference in DIFFERENCES:
        if re.fullmatch(difference.fields, place.path) and difference.applies(place):
            return difference.ours(place)
    return value


def disagreements(theirs: dict, ours: dict, facts: Facts, path: str = "") -> Iterator[str]:
    """Every field that is neither equal to 1e-9 nor different as DIFFERENCES says."""
    for name, value in theirs.items():
        here = f"{path}{name}"
        wanted = expected(Place(here, theirs, facts), value)
        if wanted is ANYTHING:
            continue
        # autorubric names its two counts of abstentions na_... and ca_...; here they are of one kind.
        mine = ours[
            name.removeprefix("na_").removeprefix("ca_") if path.endswith(("na_stats.", "assess_stats.")) else name
        ]
        if isinstance(wanted, list) and isinstance(mine, list) and len(wanted) == len(mine):
            wanted, mine = ({str(place): one for place, one in enumerate(side)} for side in (wanted, mine))
        if isinstance(wanted, dict) and isinstance(mine, dict):
            yield from disagreements(wanted, mine, facts, f"{here}.")
        elif not same(wanted, mine):
            yield f"{here}: expected {wanted!r}, ours {mine!r}, autorubric {value!r}"


def same(wanted: Any, ours: Any) -> bool:
    if isinstance(wanted, bool) or isinstance(ours, bool) or not isinstance(wanted, int | float):
        return wanted == ours
    return isinstance(ours, int | float) and abs(wanted - ours) <= 1e-9 * max(1.0, abs(wanted))


def plain(result: Any) -> dict:
    return msgspec.json.decode(msgspec.json.encode(result))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_field_equals_autorubric_or_is_listed_difference(peer, seed):
    value = votes_file(seed)
    answer = peer.answer(value, CALLS)
    votes = Votes.parse(value)
    for call, theirs in zip(CALLS, answer["results"], strict=True):
        if "error" in theirs:
            check_refusal(votes, call, theirs["error"])
            continue
        ours = plain(compute_metrics(votes, None, bootstrap=BootstrapSettings(replicates=0), **call))
        facts = Facts(value, answer["items"], call)
        assert list(disagreements(theirs, ours, facts)) == [], call
        assert same(facts.accuracy(None, binary=True), ours["binary_accuracy"])


def check_refusal(votes, call, error):
    """What autorubric refuses, ours refuses too, but for a lack of scores: that leaves the verdicts."""
    if error.startswith("No valid items with a computed score"):
        if call.get("na_mode") == "as_category" and any(
            criterion.kind == "ordinal" and criterion.abstentions
            for block in votes.blocks
            for criterion in block.rubric.criteria
        ):
            # There it would refuse this too, had it come so far.
            with pytest.raises(InputError, match="as_category"):
                compute_metrics(votes, None, **call)
            return
        result = compute_metrics(votes, None, **call)
        assert result.score_rmse is None
        assert any(warning.startswith("no-scores") for warning in result.warnings)
        return
    with pytest.raises(ValueError, match="as_category" if "as_category" in error else None):
        compute_metrics(votes, None, **call)


@pytest.mark.parametrize("seed", SEEDS)
def test_derived_verdicts_and_scores_equal_autorubric(peer, seed):
    value = votes_file(seed, rubrics=1 + seed % 2)
    answer = peer.answer(value, [])
    votes = Votes.parse(value)
    for block, derived in zip(votes.blocks, derive(votes), strict=True):
        for row, place in enumerate(block.items):
            theirs = answer["items"][place]
            assert theirs["id"] == votes.ids[place]
            assert defined(derived.true_score[row]) == approx(theirs["true_score"])
            assert defined(derived.score[row]) == approx(theirs["score"])
            if theirs["final"] is None:
                continue
            assert defined(derived.raw_score[row]) == approx(theirs["raw_score"])
            own = zip(votes.judges, derived.judge_scores[row], strict=True)
            assert {judge.id: defined(score) for judge, score in own} == approx(theirs["judge_scores"])
            for criterion, code, label, failed in zip(
                block.rubric.criteria, derived.final.codes[row], theirs["final"], theirs["failed"], strict=True
            ):
                assert code in (FAILED, FAILED_WORST) if failed else criterion.labels[code] == label


def defined(number: float) -> float | None:
    return None if np.isnan(number) else float(number)


CODES = {
    "excluded from metrics because grading errored": "errored-items",
    "criterion judgment(s) on graded items failed": "failed-cells",
    "<=2 distinct values": "score-collapse",
    "Degenerate (single-class) data": "degenerate",
    "has no ground truth, skipping": "no-truth",
}


def test_warnings_equal_autorubric(peer):
    compared = 0
    for seed in SEEDS:
        value = votes_file(seed)
        theirs = peer.answer(value, [{}])["results"][0]
        if "error" in theirs:
            continue
        compared += 1
        codes = {code for text, code in CODES.items() if any(text in warning for warning in theirs["warnings"])}
        warned = {warning.split(":")[0].split()[0] for warning in compute_metrics(Votes.parse(value), None).warnings}
        assert warned & set(CODES.values()) == codes, seed
    assert compared >= 20


POOLED = ("scale_type", "n_points", "exact_accuracy", "value_rmse", "value_mae", "value_spearman", "value_pearson")
MET = ("kappa", "phi", "precision", "recall", "f1")


def test_pooled_mixed_rubrics_equal_autorubric_without_abstaining_truth(peer):
    # Truth that abstains is counted as UNMET or 0 there, and all modes are one: see the deliberate differences.
    compared = 0
    for seed in SEEDS:
        value = votes_file(seed, rubrics=2)
        for item in value["items"]:
            if "CANNOT_ASSESS" in item.get("ground_truth", ()):
                del item["ground_truth"]
        theirs = peer.answer(value, [{}])["results"][0]
        counting = {item["rubric"] for item in value["items"] if "ground_truth" in item and "votes" in item}
        if "error" not in theirs and theirs["pooled_by_scale"] and len(counting) > 1:
            compared += 1
            same_pools(plain(compute_metrics(Votes.parse(value), None)), theirs)
    assert compared >= 15


def same_pools(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert ours["n_items"] == theirs["n_items"]
    assert ours["criterion_accuracy"] == approx(theirs["criterion_accuracy"])
    held = {pool["scale_type"]: pool for pool in ours["pooled_by_scale"]}
    assert sum(pool["n_points"] for pool in held.values()) == theirs["n_samples"]
    for pool in theirs["pooled_by_scale"]:
        mine = held[pool["scale_type"]]
        assert {name: mine[name] for name in POOLED} == {
            name: pool[name] if isinstance(pool[name], str) else approx(pool[name]) for name in POOLED
        }
        if pool["scale_type"] == "binary" and pool["n_points"]:
            assert mine["confusion_matrix"] == pool["confusion_matrix"]
            # F1 without a true positive is 0 here and undefined there.
            names = MET if pool["f1"] is not None else MET[:-1]
            assert {name: mine[name] for name in names} == {name: approx(pool[name]) for name in names}


def test_intervals_equal_autorubric_on_same_draws(peer):
    value = votes_file(12, kinds="bbb")
    value["grading"] |= {"abstention": "zero"}
    value["items"] = [item for item in value["items"] if "votes" in item and "ground_truth" in item]
    units, replicates, seed = len(value["items"]), 80, 5
    rng = np.random.default_rng(seed)
    draws = [rng.integers(0, units, units).tolist() for _ in range(replicates)]
    theirs = peer.answer(value, [{"draws": draws, "confidence_level": 0.9}])["results"][0]
    votes = Votes.parse(value)
    ours = compute_metrics(
        votes, None, bootstrap=BootstrapSettings(method="percentile", replicates=replicates, seed=seed, confidence=0.9)
    )
    assert ours.n_items == units
    for name in ("accuracy_ci", "kappa_ci", "rmse_ci"):
        assert getattr(ours.bootstrap, name) == pytest.approx(tuple(theirs["bootstrap"][name]), abs=1e-9), name


def field(result: Any, path: str) -> Any:
    for part in path.split("."):
        result = result[int(part)] if part.isdigit() else result[part]
    return result


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_deliberate_difference_follows_specification(peer, row):
    theirs = peer.answer(row.votes, [row.call], truth_as_graded=False)["results"][0]
    ours = plain(compute_metrics(Votes.parse(row.votes), None, bootstrap=BootstrapSettings(replicates=0), **row.call))
    assert {path: field(theirs, path) for path in row.theirs} == {path: near(one) for path, one in row.theirs.items()}
    assert {path: field(ours, path) for path in row.ours} == {path: near(one) for path, one in row.ours.items()}


def near(value: Any) -> Any:
    return pytest.approx(value, abs=1e-12) if isinstance(value, float) else value


def test_unknown_label_is_error_unlike_autorubric(peer):
    theirs = peer.answer(WRONG, [{}])["results"][0]
    assert (theirs["criterion_accuracy"], theirs["n_items"]) == (1.0, 3)
    with pytest.raises(InputError, match="L9"):
        Votes.parse(WRONG)


def test_score_of_only_zero_weights_is_undefined_unlike_autorubric(peer):
    theirs = peer.answer(WEIGHTLESS, [])["items"][0]
    (derived,) = derive(Votes.parse(WEIGHTLESS))
    assert theirs["score"] == 0.0
    assert np.isnan(derived.score[0])
