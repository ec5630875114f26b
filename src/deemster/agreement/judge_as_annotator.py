"""The alternative annotator test of a judge: whether it agrees with people as well as they do with each other."""

from __future__ import annotations

from pathlib import Path

from deemster.agreement._annotators import annotator_trials_by_criterion, read_annotators
from deemster.agreement._labelled_votes import HasVotes, read_labelled_votes
from deemster.agreement._verdict_classes import AbstentionModes
from deemster.agreement.result_models import AbstentionMode
from deemster.datasets import RubricDataset, Votes
from deemster.errors import InputError, plural
from deemster.stats.alternative_annotator_test import FEWEST_ANNOTATORS, AlternativeAnnotator, check_test_options


def annotator_tests(
    result: Votes | HasVotes | str | Path,
    dataset: RubricDataset | str | Path | None = None,
    *,
    judge: str | None = None,
    epsilon: float = 0.2,
    q: float = 0.05,
    min_items: int = 30,
    cannot_assess: AbstentionMode = "exclude",
    na_mode: AbstentionMode = "exclude",
) -> dict[str, AlternativeAnnotator]:
    """The alternative annotator test of each criterion: does a judge agree with people as well as they do?

    Ordinal criteria are compared by the values of their options, others by equality.

    Args:
        result: Votes, a grading, or the path of a votes file.
        dataset: Where the annotations come from; None where the votes carry them.
        judge: Who is tested; None tests the final verdicts of the panel.
        epsilon: How much worse than a person the judge may be, as it is cheaper.
        q: The false discovery rate over annotators.
        min_items: The fewest items an annotator is tested on.
        cannot_assess: What an abstention counts as on binary criteria.
        na_mode: What an abstention counts as on multi-choice criteria.

    Raises:
        InputError: There are fewer than three annotators, there is no such judge, or the votes cannot be used.
        ValueError: An option is out of range.

    Reference: N. Calderon, R. Reichart, R. Dror, The alternative annotator test for LLM-as-a-judge, arXiv:2501.10970
    (2025).
    """
    check_test_options(epsilon=epsilon, q=q, min_items=min_items)
    votes = read_labelled_votes(result, dataset, modes=AbstentionModes(cannot_assess, na_mode))
    index = None if judge is None else votes.judge_index(judge)
    annotators = read_annotators(votes)
    if len(annotators.names) < FEWEST_ANNOTATORS:
        found = plural(len(annotators.names), "annotator")
        raise InputError(f"The alternative annotator test needs three annotators; {found} labelled these items.")
    return annotator_trials_by_criterion(votes, annotators, judge=index, epsilon=epsilon, q=q, min_items=min_items)
