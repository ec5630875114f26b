from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deemster.alignment._human_agreement import human_agreement
from tests.alignment import make_votes as ballots
from tests.alignment.make_votes import CRITERIA, FACTS, JUDGES, MODES, PEOPLE, labelled_votes, votes_value


def labelled(name, labels, votes, **more):
    return {"id": name, "annotations": labels, "votes": votes, **more}


# Three people and one judge on four items: ann and bob agree throughout, cy differs once, the judge twice.
SMALL = votes_value(
    [
        labelled("q1", {"ann": ["MET"], "bob": ["MET"], "cy": ["MET"]}, {"j": ["MET"]}),
        labelled("q2", {"ann": ["MET"], "bob": ["MET"], "cy": ["UNMET"]}, {"j": ["UNMET"]}),
        labelled("q3", {"ann": ["UNMET"], "bob": ["UNMET"], "cy": ["UNMET"]}, {"j": ["UNMET"]}),
        labelled("q4", {"ann": ["UNMET"], "bob": ["UNMET"], "cy": ["UNMET"]}, {"j": ["MET"]}),
    ],
    criteria=[FACTS],
    judges=["j"],
)


def test_each_person_is_compared_with_consensus_of_others():
    found = human_agreement(labelled_votes(SMALL))
    # Without ann, bob and cy are tied on q2, so three items remain, on which she agrees; so for bob.
    assert [(one.name, one.accuracy, one.mean_kappa, one.n_samples) for one in found.annotators] == [
        ("ann", 1.0, 1.0, 3),
        ("bob", 1.0, 1.0, 3),
        ("cy", 0.75, 0.5, 4),
    ]
    assert found.ceiling_accuracy == pytest.approx(2.75 / 3)
    assert found.ceiling_kappa == pytest.approx(2.5 / 3)
    assert (found.n_annotators, found.n_items) == (3, 4)


def test_judge_is_compared_with_same_references_and_gap_is_difference():
    found = human_agreement(labelled_votes(SMALL))
    # Without ann or bob: q1 right, q3 right, q4 wrong. Without cy: q2 wrong too.
    assert found.panel.accuracy == pytest.approx((2 / 3 + 2 / 3 + 2 / 4) / 3)
    # MET UNMET UNMET against MET UNMET MET: 1/3 of the chance-expected 5/9 - 4/9; with q2 it is chance itself.
    assert found.panel.mean_kappa == pytest.approx((0.4 + 0.4 + 0.0) / 3)
    assert found.panel.n_samples == 10
    assert found.judges[0].accuracy == found.panel.accuracy
    assert found.judges[0].name == "j"
    assert found.accuracy_gap == pytest.approx(found.panel.accuracy - 2.75 / 3)
    assert found.kappa_gap == pytest.approx(0.8 / 3 - 2.5 / 3)


def test_the_alpha_of_people_rests_on_units_with_two_labels():
    found = human_agreement(labelled_votes(SMALL))
    # 12 labels, 5 MET and 7 UNMET; q2 alone disagrees: 4 of its 6 ordered pairs, each worth a half.
    assert found.per_criterion[0].krippendorff_alpha == pytest.approx(1 - 11 * 2 / (2 * 5 * 7))
    assert found.krippendorff_alpha == found.per_criterion[0].krippendorff_alpha
    assert found.per_criterion[0].n_units == 4


def test_one_annotator_gives_no_ceiling():
    items = [labelled("q1", {"ann": ["MET"]}, {"j": ["MET"]}), labelled("q2", {"ann": ["UNMET"]}, {"j": ["MET"]})]
    assert human_agreement(labelled_votes(votes_value(items, criteria=[FACTS], judges=["j"]))) is None


def test_annotators_without_common_items_have_no_ceiling():
    items = [labelled("q1", {"ann": ["MET"]}, {"j": ["MET"]}), labelled("q2", {"bob": ["UNMET"]}, {"j": ["MET"]})]
    found = human_agreement(labelled_votes(votes_value(items, criteria=[FACTS], judges=["j"])))
    assert (found.n_annotators, found.n_items, found.ceiling_accuracy, found.accuracy_gap) == (2, 0, None, None)
    assert (found.krippendorff_alpha, found.panel.n_samples, found.panel.accuracy) == (None, 0, None)


def slow_human(value, modes, *, draw=None):
    """Everything again, with loops over labels; `draw` names the items of a replicate."""
    items = ballots.used(value)
    chosen = items if draw is None else [items[place] for place in draw]
    people = sorted({who for item in items for who, row in item.get("annotations", {}).items() if any(row)})
    rows, totals = {}, {}
    for person in people:
        for side in (person, "panel", *JUDGES):
            right, kappas, count = 0, [], 0
            for place, criterion in enumerate(CRITERIA):
                pairs = []
                for item in chosen:
                    labels = item.get("annotations", {})
                    others = [row[place] for who, row in labels.items() if who != person]
                    reference = ballots.seen(criterion, ballots.agreed(criterion, others), modes)
                    own = ballots.seen(criterion, labels[person][place] if person in labels else None, modes)
                    said = own
                    if side == "panel":
                        said = ballots.seen(criterion, item["final"][place], modes)
                    elif side in JUDGES:
                        cell = item["votes"][side][place] if side in item["votes"] else None
                        said = ballots.seen(criterion, cell, modes)
                    if None not in (reference, own, said):
                        pairs.append((reference, said))
                right += sum(one == other for one, other in pairs)
                count += len(pairs)
                kappas.append(ballots.kappa(pairs, criterion))
            rows[person, side] = (right / count if count else None, ballots.mean(kappas))
            totals[person, side] = count
    alphas = [
        ballots.alpha(
            [
                [
                    label
                    for row in item.get("annotations", {}).values()
                    if (label := ballots.seen(criterion, row[place], modes)) is not None
                ]
                for item in chosen
            ],
            criterion,
        )
        for place, criterion in enumerate(CRITERIA)
    ]
    return people, rows, totals, alphas


def one_vote_each(value):
    """Repeats are merged before alignment sees them; here every judge has one vote."""
    for item in value["items"]:
        for cells in item["votes"].values():
            cells[:] = [cell[0] if isinstance(cell, list) else cell for cell in cells]
    return value


def near(found, expected):
    return found == (expected if expected is None else pytest.approx(expected, abs=1e-9))


@settings(max_examples=40)
@given(ballots.panels(), st.sampled_from(MODES))
def test_ceiling_equals_loop_over_labels(value, modes):
    value = one_vote_each(value)
    people, rows, totals, alphas = slow_human(value, modes)
    found = human_agreement(labelled_votes(value, modes))
    if len(people) < 2:
        assert found is None
        return
    assert [one.name for one in found.annotators] == people
    for one in found.annotators:
        assert near(one.accuracy, rows[one.name, one.name][0])
        assert near(one.mean_kappa, rows[one.name, one.name][1])
        assert one.n_samples == totals[one.name, one.name]
    for one in (found.panel, *found.judges):
        assert near(one.accuracy, ballots.mean(rows[person, one.name][0] for person in people))
        assert near(one.mean_kappa, ballots.mean(rows[person, one.name][1] for person in people))
        assert one.n_samples == sum(totals[person, one.name] for person in people)
    assert near(found.ceiling_accuracy, ballots.mean(rows[person, person][0] for person in people))
    assert near(found.ceiling_kappa, ballots.mean(rows[person, person][1] for person in people))
    for part, expected in zip(found.per_criterion, alphas, strict=True):
        assert near(part.krippendorff_alpha, expected)
    assert near(found.krippendorff_alpha, ballots.mean(alphas))


@settings(max_examples=40)
@given(ballots.panels(), st.integers(0, 2**31))
def test_every_replicate_of_the_ceiling_is_that_of_the_items_drawn(value, seed):
    value = one_vote_each(value)
    modes = MODES[0]
    votes = labelled_votes(value, modes)
    found = human_agreement(votes, replicates=4, seed=seed)
    if found is None:
        return
    rng = np.random.default_rng(seed)
    n, ceilings, alphas = len(votes.ids), [], []
    for _ in range(4):
        people, rows, _, criteria = slow_human(value, modes, draw=rng.integers(0, n, n).tolist())
        ceilings.append(ballots.mean(rows[person, person][0] for person in people))
        alphas.append(ballots.mean(criteria))
    for name, values in (("ceiling_accuracy", ceilings), ("krippendorff_alpha", alphas)):
        known = [one for one in values if one is not None]
        result = found.intervals[name]
        assert result.n_bootstrap == len(known)
        if len(known) >= 2 and result.estimate is not None:
            assert result.ci.lower == pytest.approx(np.quantile(known, 0.025), abs=1e-9)
            assert result.ci.upper == pytest.approx(np.quantile(known, 0.975), abs=1e-9)
            assert result.standard_error == pytest.approx(np.std(known, ddof=1), abs=1e-9)
        else:
            assert result.ci is None


def test_people_are_sorted_by_name():
    items = [labelled("q1", {name: ["MET"] for name in reversed(PEOPLE)}, {"j": ["MET"]})]
    found = human_agreement(labelled_votes(votes_value(items, criteria=[FACTS], judges=["j"])))
    assert [one.name for one in found.annotators] == sorted(PEOPLE)
