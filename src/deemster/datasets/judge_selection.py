"""Reduces votes to some judges of the panel."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

import numpy as np

from deemster.datasets.vote_block import Block, Labels
from deemster.datasets.votes import Votes
from deemster.rubrics.criterion import MISSING


def select_judges(votes: Votes, judges: Collection[str]) -> tuple[Votes, int]:
    """Votes as if these judges were the whole panel, and on how many items a record was dropped.

    Judges stay in the order of the votes. Final verdicts and scores that were recorded are those of the whole panel, so
    they go, unless everyone stays. Checks are no judges, and stay.

    Args:
        votes: The votes.
        judges: The ids of those who stay; all are known.
    """
    places = [place for place, judge in enumerate(votes.judges) if judge.id in judges]
    if len(places) == len(votes.judges):
        return votes, 0
    dropped = 0
    for block in votes.blocks:
        recorded = (block.recorded_final.codes != MISSING).any(axis=1) | ~np.isnan(block.recorded_score)
        dropped += int(recorded.sum())
    blocks = tuple(_reduced(block, places) for block in votes.blocks)
    return dataclasses.replace(votes, judges=tuple(votes.judges[place] for place in places), blocks=blocks), dropped


def _reduced(block: Block, places: list[int]) -> Block:
    moved = {judge: at for at, judge in enumerate(places)}
    many = block.votes.codes.shape[2]
    # The judge after the last is the check.
    columns = moved | {many: len(places)}
    details: dict[int, Any] = {}
    for index, cell in block.details.items():
        cell_at, judge = divmod(index, many + 1)
        if judge in columns:
            details[cell_at * (len(places) + 1) + columns[judge]] = cell
    return dataclasses.replace(
        block,
        votes=block.votes.of_judges(places),
        repeats=tuple(one._replace(judge=moved[one.judge]) for one in block.repeats if one.judge in moved),
        probabilities=tuple(one._replace(judge=moved[one.judge]) for one in block.probabilities if one.judge in moved),
        recorded_final=Labels.blank(block.rubric, len(block)),
        recorded_score=np.full_like(block.recorded_score, np.nan),
        details=details,
    )
