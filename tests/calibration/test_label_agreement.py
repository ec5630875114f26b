"""How far people agree who labelled the same outputs."""

from __future__ import annotations

from deemster.calibration.label_agreement import label_agreement
from deemster.store import LabelFacts


def label(author, position, verdict, *, repetition=0, order="random"):
    return LabelFacts(
        position=position, repetition=repetition, author=author, at="2026-11-19T00:00:00Z", verdict=verdict, order=order
    )


def test_of_the_repetitions_of_a_sample_the_first_that_two_people_labelled_counts():
    labels = [label("ada", 0, "pass"), label("bert", 1, "fail"), label("ada", 1, "fail")]
    for repetition, verdict in ((1, "fail"), (2, "pass")):
        labels += [label("ada", 0, "pass", repetition=repetition), label("bert", 0, verdict, repetition=repetition)]
    agreement = label_agreement(labels)
    # Repetition 0 has one label, and in repetition 2 they agree.
    assert (agreement.statistic, agreement.n, agreement.value) == ("kappa", 2, 0.0)


def test_labels_of_one_person_or_of_chosen_samples_compare_nobody():
    alone = [label("ada", position, "pass") for position in range(3)]
    chosen = [label("bert", position, "fail", order="disputed") for position in range(3)]
    agreement = label_agreement([*alone, *chosen])
    assert (agreement.n, agreement.value, agreement.statistic) == (0, None, None)
    assert agreement.because == "No sample that was drawn at random was labelled by two people."
