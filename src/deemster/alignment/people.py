"""The labels of each annotator, laid out like the votes of a panel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deemster.alignment.panel import Codes, Panel
from deemster.dataset.entries import consensus
from deemster.rubrics import MISSING, Criterion


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """Annotators with at least one label on the items of a panel.

    Attributes:
        names: Who they are, in order of the alphabet.
        labels: For each column of the panel: codes ``[rows, annotators]``.
    """

    names: tuple[str, ...]
    labels: tuple[Codes, ...]


def people(whole: Panel) -> People:
    """The annotators of a panel and what they said."""
    blocks = whole.votes.blocks
    known = sorted({name for block in blocks for name in block.annotations})
    labels = []
    for column in whole.columns:
        codes = np.full((len(column.rows), len(known)), MISSING, dtype=np.int16)
        for number, place in column.sources:
            block = blocks[number]
            outside = whole.place[block.items]
            inside = np.flatnonzero(outside >= 0)
            rows = np.searchsorted(column.rows, outside[inside])
            for person, name in enumerate(known):
                if name in block.annotations:
                    codes[rows, person] = block.annotations[name][inside, place]
        labels.append(codes)
    said = np.zeros(len(known), dtype=bool)
    for codes in labels:
        said |= (codes != MISSING).any(axis=0)
    names = tuple(name for name, spoke in zip(known, said.tolist(), strict=True) if spoke)
    return People(names, tuple(codes[:, said] for codes in labels))


def agreed(criterion: Criterion, codes: Codes) -> Codes:
    """The consensus of each row of labels; missing where there is none."""
    # Few distinct rows recur often: each is settled once.
    distinct, which = np.unique(codes, axis=0, return_inverse=True)
    settled = np.array([consensus(criterion, row) for row in distinct.tolist()], dtype=np.int16)
    return settled[which.reshape(-1)]
