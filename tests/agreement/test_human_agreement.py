from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.agreement import BootstrapSettings, compute_metrics
from deemster.agreement._annotator_sums import AnnotatorSums
from deemster.agreement._annotators import read_annotators
from deemster.agreement._human_agreement import human_agreement
from deemster.agreement.agreement_report import agreement_sections, short_agreement_sections
from deemster.agreement.result_models import DisputedCell
from deemster.datasets import Votes
from deemster.stats.concordance import concordance
from deemster.text.markdown_layout import render_markdown
from tests.agreement import make_votes as ballots
from tests.agreement.make_votes import CRITERIA, FACTS, JUDGES, MODES, PEOPLE, labelled_votes, votes_value


def labelled(name, labels, votes, **more):
    return {"id": name, "annotations": labels, "votes": votes, **more}


# Three people and one judge on four items: ann and bob agree throughout, cy differs once, the judge twice.
NOT_DRAWN = BootstrapSettings(replicates=0)
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
    found = human_agreement(labelled_votes(SMALL), NOT_DRAWN)
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
    found = human_agreement(labelled_votes(SMALL), NOT_DRAWN)
    # Without ann or bob: q1 right, q3 right, q4 wrong. Without cy: q2 wrong too.
    assert found.panel.accuracy == pytest.approx((2 / 3 + 2 / 3 + 2 / 4) / 3)
    # MET UNMET UNMET against MET UNMET MET: 1/3 of the chance-expected 5/9 - 4/9; with q2 it is chance itself.
    assert found.panel.mean_kappa == pytest.approx((0.4 + 0.4 + 0.0) / 3)
    assert found.panel.n_samples == 10
    assert found.judges[0].accuracy == found.panel.accuracy
    assert found.judges[0].name == "j"
    assert found.accuracy_gap == pytest.approx(found.panel.accuracy - 2.75 / 3)
    assert found.kappa_gap == pytest.approx(0.8 / 3 - 2.5 / 3)


def test_alpha_of_people_rests_on_units_with_two_labels():
    found = human_agreement(labelled_votes(SMALL), NOT_DRAWN)
    # 12 labels, 5 MET and 7 UNMET; q2 alone disagrees: 4 of its 6 ordered pairs, each worth a half.
    assert found.per_criterion[0].krippendorff_alpha == pytest.approx(1 - 11 * 2 / (2 * 5 * 7))
    assert found.krippendorff_alpha == found.per_criterion[0].krippendorff_alpha
    assert found.per_criterion[0].n_units == 4


def test_pairwise_kappa_takes_every_pair_of_two_labels_and_of_label_and_verdict():
    found = human_agreement(labelled_votes(SMALL), NOT_DRAWN)
    # 12 labels, 5 MET and 7 UNMET; 2 of 12 weighted pairs differ, where chance gives 2·5·7/144.
    assert found.pairwise_kappa == pytest.approx(1 - (2 / 12) / (70 / 144))
    # The judge says MET on q1 and q4, half of the 12 pairs: ann and bob differ on q2 and q4, cy on q4.
    assert found.panel_pairwise_kappa == pytest.approx(1 - (5 / 12) / (1 / 2))
    assert found.pairwise_kappa_gap == pytest.approx(found.panel_pairwise_kappa - found.pairwise_kappa)
    assert (found.n_cells, found.n_labelled_cells, found.disputed) == (4, 4, ())


def test_disputed_cells_are_in_pairwise_kappa_and_listed_with_every_label():
    items = [
        labelled("q2", {"bob": ["UNMET"], "ann": ["MET"]}, {"j": ["MET"]}),
        labelled("q1", {"ann": ["MET"], "bob": ["UNMET"]}, {"j": ["UNMET"]}),
        labelled("q3", {"ann": ["MET"], "bob": ["MET"]}, {"j": ["MET"]}),
        labelled("q4", {"ann": ["UNMET"]}, {"j": ["MET"]}),
    ]
    found = human_agreement(labelled_votes(votes_value(items, criteria=[FACTS], judges=["j"])), NOT_DRAWN)
    said = {"ann": "MET", "bob": "UNMET"}
    assert found.disputed == (DisputedCell("q1", "facts", said), DisputedCell("q2", "facts", said))
    assert (found.n_items, found.n_cells, found.n_labelled_cells) == (3, 3, 4)
    # Four MET and two UNMET; the two tied cells differ, one agrees.
    assert found.pairwise_kappa == pytest.approx(1 - (4 / 6) / (2 * 4 * 2 / 36))


def test_one_annotator_gives_no_ceiling():
    items = [labelled("q1", {"ann": ["MET"]}, {"j": ["MET"]}), labelled("q2", {"ann": ["UNMET"]}, {"j": ["MET"]})]
    assert human_agreement(labelled_votes(votes_value(items, criteria=[FACTS], judges=["j"])), NOT_DRAWN) is None


def test_annotators_without_common_items_have_no_ceiling():
    items = [labelled("q1", {"ann": ["MET"]}, {"j": ["MET"]}), labelled("q2", {"bob": ["UNMET"]}, {"j": ["MET"]})]
    found = human_agreement(labelled_votes(votes_value(items, criteria=[FACTS], judges=["j"])), NOT_DRAWN)
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
    return people, rows, totals, alphas, slow_pairwise(chosen, modes)


def slow_pairwise(items, modes):
    """Kappa of two people's labels and of a person's label and the verdict, and cells with two labels and with one."""
    among, against, cells, any_label = [], [], 0, 0
    for place, criterion in enumerate(CRITERIA):
        of_people, of_panel = Counter(), Counter()
        for item in items:
            labels = [ballots.seen(criterion, row[place], modes) for row in item.get("annotations", {}).values()]
            labels = [label for label in labels if label is not None]
            final = ballots.seen(criterion, item["final"][place], modes)
            any_label += bool(labels)
            if len(labels) < 2:
                continue
            cells += 1
            for one, other in permutations(labels, 2):
                of_people[one, other] += 1 / (len(labels) - 1)
            for label in labels if final is not None else ():
                of_panel[label, final] += 1
        among.append(kappa_of_counts(of_people, criterion))
        against.append(kappa_of_counts(of_panel, criterion))
    return ballots.mean(among), ballots.mean(against), cells, any_label


def kappa_of_counts(counts, criterion):
    order = [*ballots.labels_of(criterion), "abstention"]
    total = sum(counts.values())
    seen = chance = 0.0
    for (one, other), count in counts.items():
        seen += count * distance(order, criterion, one, other)
    for (one, _), count in counts.items():
        for (_, other), more in counts.items():
            chance += count * more * distance(order, criterion, one, other)
    return 1 - total * seen / chance if chance else None


def distance(order, criterion, one, other):
    if criterion.get("scale_type") == "ordinal":
        return (order.index(one) - order.index(other)) ** 2
    return int(one != other)


def one_vote_each(value):
    """Repeats are merged before alignment sees them; here every judge has one vote."""
    for item in value["items"]:
        for cells in item["votes"].values():
            cells[:] = [cell[0] if isinstance(cell, list) else cell for cell in cells]
    return value


def near(found, expected):
    return found == (expected if expected is None else pytest.approx(expected, abs=1e-9))


@given(ballots.panels(), st.sampled_from(MODES))
def test_ceiling_equals_loop_over_labels(value, modes):
    value = one_vote_each(value)
    people, rows, totals, alphas, (among, against, cells, any_label) = slow_human(value, modes)
    found = human_agreement(labelled_votes(value, modes), NOT_DRAWN)
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
    assert near(found.pairwise_kappa, among)
    assert near(found.panel_pairwise_kappa, against)
    assert (found.n_cells, found.n_labelled_cells) == (cells, any_label)


@given(ballots.panels(), st.integers(0, 2**31))
def test_every_replicate_of_the_ceiling_is_that_of_the_items_drawn(value, seed):
    value = one_vote_each(value)
    modes = MODES[0]
    votes = labelled_votes(value, modes)
    annotators = read_annotators(votes)
    if len(annotators.names) < 2:
        return
    n = len(votes.ids)
    drawn = np.random.default_rng(seed).integers(0, n, (4, n))
    draws = np.stack([np.bincount(places, minlength=n) for places in drawn], axis=1).astype(np.float64)
    replicates = AnnotatorSums(votes, annotators).values(draws)
    for column, places in enumerate(drawn.tolist()):
        people, rows, _, criteria, (among, against, _, _) = slow_human(value, modes, draw=places)
        alpha, accuracy, kappa, *_, own, other, gap = replicates[:10, column].tolist()
        expected = (
            ballots.mean(criteria),
            ballots.mean(rows[person, person][0] for person in people),
            ballots.mean(rows[person, person][1] for person in people),
            among,
            against,
            None if None in (among, against) else against - among,
        )
        for found, known in zip((alpha, accuracy, kappa, own, other, gap), expected, strict=True):
            assert near(None if np.isnan(found) else found, known)


@given(ballots.panels(), st.integers(0, 2**31))
def test_intervals_of_people_have_a_width_and_stay_in_range(value, seed):
    found = human_agreement(labelled_votes(value), BootstrapSettings(replicates=40, seed=seed))
    if found is None:
        return
    least = {"ceiling_accuracy": 0, "panel.accuracy": 0, "pairwise_kappa_gap": -2, "kappa_gap": -2}
    for name, one in found.intervals.items():
        if one.ci is not None:
            assert least.get(name, -1) <= one.ci.lower < one.ci.upper <= (2 if name.endswith("kappa_gap") else 1)
            assert one.ci.method == "smoothed"
        # Where the panel says what the people say, this gap is 0 in every replicate: it has no interval.
        never_moves = name == "accuracy_gap" and found.panel.accuracy == found.ceiling_accuracy
        # A number that is undefined in most replicates has none either.
        if one.estimate is not None and found.n_items > 1 and one.n_bootstrap >= 20 and not never_moves:
            assert one.ci is not None


def test_people_are_sorted_by_name():
    items = [labelled("q1", {name: ["MET"] for name in reversed(PEOPLE)}, {"j": ["MET"]})]
    found = human_agreement(labelled_votes(votes_value(items, criteria=[FACTS], judges=["j"])), NOT_DRAWN)
    assert [one.name for one in found.annotators] == sorted(PEOPLE)


GRADE = {"name": "grade", "requirement": "How good is it?", "weight": 1, "minimum": 1, "maximum": 5}


def graded(people, judges, **more):
    """Votes on one numeric criterion: items × people, NaN for no label, and judges × items."""
    items = [
        {
            "id": f"i{place:03d}",
            "annotations": {f"p{person}": [None if np.isnan(one) else one] for person, one in enumerate(row)},
            "votes": {f"j{judge}": [column[place]] for judge, column in enumerate(judges)},
        }
        for place, row in enumerate(people.tolist())
    ]
    return votes_value(items, criteria=[GRADE], judges=[f"j{judge}" for judge in range(len(judges))], **more)


def grades(seed, n=40, people=4):
    rng = np.random.default_rng(seed)
    real = rng.normal(3, 0.8, n)
    said = np.clip(real[:, None] + 0.4 * rng.normal(size=(n, people)), 1, 5).round(2)
    said[rng.random(said.shape) < 0.1] = np.nan
    return said, np.clip(real + 0.3 + 0.4 * rng.normal(size=(2, n)), 1, 5).round(2)


@pytest.mark.parametrize("clusters", [None, 8])
def test_people_are_compared_with_the_mean_of_the_others_on_numbers(clusters):
    people, judges = grades(1)
    cluster = None if clusters is None else {f"i{place:03d}": place % clusters for place in range(len(people))}
    votes = labelled_votes(graded(people, judges.tolist()), cluster=cluster)
    found = human_agreement(votes, BootstrapSettings(replicates=100, seed=2))
    panel = judges.mean(axis=0)
    rows = []
    for person in range(people.shape[1]):
        own, others = people[:, person], np.delete(people, person, axis=1)
        known = ~np.isnan(own) & ~np.isnan(others).all(axis=1)
        mean = np.nanmean(others[known], axis=1)
        rows.append([concordance(side[known], mean).value for side in (own, panel, *judges)])
        assert found.annotators[person].n_samples == known.sum()
    ceiling, reached, *each = np.mean(rows, axis=0)
    assert [one.mean_kappa for one in found.annotators] == pytest.approx([row[0] for row in rows])
    assert found.ceiling_kappa == pytest.approx(ceiling)
    assert found.panel.mean_kappa == pytest.approx(reached)
    assert [one.mean_kappa for one in found.judges] == pytest.approx(each)
    assert found.kappa_gap == pytest.approx(reached - ceiling)
    assert found.ceiling_accuracy is None
    interval = found.intervals["ceiling_kappa"].ci
    assert interval.lower < found.ceiling_kappa < interval.upper


def test_raters_who_agree_on_numbers_reach_the_ceiling_and_the_report_says_so():
    people = np.tile(np.arange(1.0, 5.0, 0.5)[:, None], 3)
    judge = np.clip(people[:, 0] + 0.5, 1, 5).tolist()
    result = compute_metrics(
        Votes.parse(graded(people, [judge])), None, bootstrap=BootstrapSettings(replicates=50, seed=1)
    )
    assert result.human.ceiling_kappa == pytest.approx(1.0)
    text = render_markdown(short_agreement_sections(result, more="More."))
    assert (
        "The ceiling: a person compared with the mean of the others reaches a concordance of 1.0000, the judge" in text
    )
    assert "no person can be compared" not in text


def test_report_on_several_judges_says_that_it_speaks_of_the_panel():
    people, judges = grades(3, n=12)
    for cast in (judges.tolist(), judges[:1].tolist()):
        result = compute_metrics(
            Votes.parse(graded(people, cast)), None, bootstrap=BootstrapSettings(replicates=50, seed=1)
        )
        for sections in (short_agreement_sections(result, more="More."), agreement_sections(result)):
            lines = render_markdown(sections[:1]).splitlines()
            told = [line for line in lines[:8] if "joint verdict of 2 judges, the panel; `--judge NAME`" in line]
            assert len(told) == len(cast) - 1
