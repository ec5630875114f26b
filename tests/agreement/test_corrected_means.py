from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.agreement import BootstrapSettings, compute_metrics
from deemster.agreement._corrected_means import corrected_means
from deemster.datasets import Votes
from deemster.stats import newcombe, ppi_mean
from tests.agreement import make_votes as ballots
from tests.agreement.make_votes import FACTS, MODES, labelled_votes, votes_value


def rows_of(labelled, unlabelled):
    """Items with (truth, verdict), then items with a verdict alone."""
    rows = [
        {"id": f"l{place:04d}", "ground_truth": [truth], "votes": {"j": [said]}}
        for place, (truth, said) in enumerate(labelled)
    ]
    return rows + [{"id": f"u{place:04d}", "votes": {"j": [said]}} for place, said in enumerate(unlabelled)]


def corrected_of(labelled, unlabelled, **more):
    return corrected_means(
        labelled_votes(votes_value(rows_of(labelled, unlabelled), criteria=[FACTS], judges=["j"])), **more
    )


def verdicts(digits):
    return ["MET" if digit == "1" else "UNMET" for digit in digits]


def test_published_ppi_example_is_reproduced_from_votes_file():
    labelled = list(zip(verdicts("1011010111"), verdicts("1010011111"), strict=True))
    found = corrected_of(labelled, verdicts("1" * 65 + "0" * 35)).score
    assert (found.value, found.weight) == pytest.approx((0.6781, 0.4382), abs=5e-5)
    labels, said = ([int(digit) for digit in digits] for digits in ("1011010111", "1010011111"))
    unbounded = ppi_mean(labels, said, [1] * 65 + [0] * 35).interval
    assert (unbounded.lower, unbounded.upper) == pytest.approx((0.4315, 0.9247), abs=5e-5)
    bounded = ppi_mean(labels, said, [1] * 65 + [0] * 35, bounds=(0, 1)).interval
    assert (found.ci.lower, found.ci.upper) == pytest.approx((bounded.lower, bounded.upper))
    assert (found.ci.method, found.ci.confidence) == ("bounded ppi++", 0.95)
    assert (found.n_labelled, found.n_unlabelled) == (10, 100)
    assert (found.labelled_mean, found.predicted_mean) == pytest.approx((0.7, 72 / 110))


def test_published_rogan_gladen_example_is_reproduced_from_votes_file():
    # Sensitivity 108 of 120, specificity 64 of 80, and 620 of all 1,000 verdicts are MET.
    labelled = [("MET", "MET")] * 108 + [("MET", "UNMET")] * 12 + [("UNMET", "UNMET")] * 64 + [("UNMET", "MET")] * 16
    (found,) = corrected_of(labelled, ["MET"] * 496 + ["UNMET"] * 304).met_rates
    assert (found.sensitivity, found.n_positive) == (0.9, 120)
    assert (found.specificity, found.n_negative) == (0.8, 80)
    assert (found.observed_rate, found.n_samples) == (0.62, 1000)
    assert found.value == pytest.approx(0.6)
    assert (found.ci.lower, found.ci.upper) == pytest.approx((0.5157, 0.6808), abs=5e-5)
    assert not found.is_clipped


def test_with_all_items_labelled_nothing_is_corrected():
    assert corrected_of([("MET", "MET"), ("UNMET", "MET")], []) is None


def test_ungraded_unlabelled_item_triggers_no_correction():
    rows = [*rows_of([("MET", "MET"), ("UNMET", "MET")], []), {"id": "x", "error": "timed out"}]
    assert corrected_means(labelled_votes(votes_value(rows, criteria=[FACTS], judges=["j"]))) is None


def test_items_that_annotators_are_tied_on_are_counted_once():
    tied = {"id": "t", "annotations": {"ann": ["MET"], "bob": ["UNMET"]}, "votes": {"j": ["MET"]}}
    labelled = [("MET", "MET"), ("UNMET", "UNMET"), ("UNMET", "MET")]
    rows = [*rows_of(labelled, []), tied]
    assert corrected_means(labelled_votes(votes_value(rows, criteria=[FACTS], judges=["j"]))) is None
    rows = [*rows_of(labelled, ["UNMET"]), tied]
    found = corrected_means(labelled_votes(votes_value(rows, criteria=[FACTS], judges=["j"])))
    assert (found.score.n_labelled, found.score.n_unlabelled) == (3, 2)
    assert (found.met_rates[0].observed_rate, found.met_rates[0].n_samples) == (3 / 5, 5)


def test_judge_that_few_labels_do_not_tell_from_chance_gives_no_corrected_rate_but_the_reason():
    # Sensitivity .503 and specificity .503 on the public arena labels: se + sp - 1 = .006.
    labelled = [("MET", "MET")] * 88 + [("MET", "UNMET")] * 87 + [("UNMET", "UNMET")] * 88 + [("UNMET", "MET")] * 87
    (found,) = corrected_of(labelled, ["MET"] * 300 + ["UNMET"] * 100).met_rates
    assert found.sensitivity + found.specificity - 1 == pytest.approx(0.006, abs=3e-4)
    assert (found.value, found.ci, found.is_clipped) == (None, None, False)
    assert "These labels do not tell the judge from chance: sensitivity + specificity - 1 is 0.0057" in found.note


def test_judge_at_chance_gives_no_corrected_rate():
    (found,) = corrected_of([("MET", "UNMET"), ("UNMET", "MET")], ["MET"]).met_rates
    assert (found.value, found.ci, found.sensitivity, found.specificity) == (None, None, 0.0, 0.0)
    assert (found.observed_rate, found.n_samples) == (pytest.approx(2 / 3), 3)


def test_without_a_true_unmet_there_is_no_specificity_and_no_rate():
    (found,) = corrected_of([("MET", "MET"), ("MET", "UNMET")], ["MET"]).met_rates
    assert (found.sensitivity, found.specificity, found.value, found.n_negative) == (0.5, None, None, 0)
    assert found.note == "Nothing measures how often the judge errs on both sides: every labelled sample passes."


def test_rate_that_contradicts_errors_is_clipped_and_flagged():
    labelled = [("MET", "MET")] * 9 + [("MET", "UNMET")] + [("UNMET", "UNMET")] * 8 + [("UNMET", "MET")] * 2
    (found,) = corrected_of(labelled, ["MET"] * 400).met_rates
    assert found.value == 1.0
    assert found.is_clipped


def test_abstentions_failures_and_errored_items_are_in_no_rate():
    rows = rows_of([("MET", "MET"), ("UNMET", "UNMET")], ["MET", "CANNOT_ASSESS", {"failure": "parse"}, None])
    rows.append({"id": "x", "error": "timed out"})
    found = corrected_means(labelled_votes(votes_value(rows, criteria=[FACTS], judges=["j"])))
    assert found.met_rates[0].n_samples == 3
    assert found.score.n_unlabelled == 1


def test_labelled_item_with_a_gap_in_its_truth_counts_as_one_without_a_true_score():
    rows = rows_of([("MET", "MET"), ("UNMET", "UNMET"), (None, "MET")], ["MET"])
    found = corrected_means(labelled_votes(votes_value(rows, criteria=[FACTS], judges=["j"])))
    assert (found.score.n_labelled, found.score.n_unlabelled) == (2, 2)


@given(ballots.panels(), st.sampled_from(MODES))
def test_corrected_rates_equal_loop_over_verdicts(value, modes):
    found = corrected_means(labelled_votes(value, modes))
    labelled = ballots.used(value)
    if len(labelled) == len(value["items"]):
        assert found is None
        return
    for one in found.met_rates:
        criterion = ballots.CRITERIA[one.index]
        pairs = [
            (ballots.seen(criterion, ballots.truth_of(item, one.index, criterion), modes),
             ballots.seen(criterion, item["final"][one.index], modes))
            for item in labelled
        ]  # fmt: skip
        pairs = [pair for pair in pairs if None not in pair]
        seen = [ballots.seen(criterion, item["final"][one.index], modes) for item in value["items"]]
        seen = [entry for entry in seen if entry is not None]
        met = [said == "MET" for truth, said in pairs if truth == "MET"]
        unmet = [said != "MET" for truth, said in pairs if truth != "MET"]
        assert (one.n_samples, one.n_positive, one.n_negative) == (len(seen), len(met), len(unmet))
        assert one.observed_rate == (pytest.approx(seen.count("MET") / len(seen)) if seen else None)
        assert one.sensitivity == (pytest.approx(sum(met) / len(met)) if met else None)
        assert one.specificity == (pytest.approx(sum(unmet) / len(unmet)) if unmet else None)
        if met and unmet and newcombe(sum(met), len(met), len(unmet) - sum(unmet), len(unmet)).interval.lower > 0:
            rate = (one.observed_rate + one.specificity - 1) / (one.sensitivity + one.specificity - 1)
            assert one.value == pytest.approx(min(1, max(0, rate)))
            assert (one.note is not None) == (one.is_clipped or one.ci is None)
        else:
            assert one.value is one.ci is None
            assert not met or not unmet or "do not tell the judge from chance" in one.note


def test_corrected_numbers_take_clusters_as_units():
    once = [("MET", "MET")] * 14 + [("UNMET", "MET")] * 4 + [("UNMET", "UNMET")] * 12
    bare = ["MET"] * 40 + ["UNMET"] * 20
    rows = [
        {**row, "id": f"{row['id']}-{copy}", "metadata": {"doc": row["id"]}}
        for row in rows_of(once, bare)
        for copy in range(6)
    ]
    votes = votes_value(rows, criteria=[FACTS], judges=["j"])
    alone = corrected_of(once, bare)
    copied = compute_metrics(Votes.parse(votes), cluster="doc", bootstrap=BootstrapSettings(replicates=2)).corrected
    plain = compute_metrics(Votes.parse(votes), bootstrap=BootstrapSettings(replicates=2)).corrected
    assert copied.score.value == pytest.approx(alone.score.value, abs=0.01)
    # A single item has the longer interval that few labels get.
    assert 0.75 * alone.score.ci.width < copied.score.ci.width < 1.1 * alone.score.ci.width
    assert plain.score.ci.width < 0.6 * copied.score.ci.width
    assert copied.met_rates[0].ci.width == pytest.approx(alone.met_rates[0].ci.width, rel=0.1)
    assert plain.met_rates[0].ci.width < 0.6 * copied.met_rates[0].ci.width
