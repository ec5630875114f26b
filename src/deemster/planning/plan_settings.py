"""What a question of planning rests on, as `--set` of the command line says it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from deemster.errors import ConfigurationError
from deemster.formats.schema_validation import OpenShare, Share
from deemster.planning.sample_plans import USUAL_ICC, Goal, Noise, stated_noise


class PlanSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How certain an answer must be, and what the user says about the noise.

    Attributes:
        confidence: The level of intervals and one-sided bounds.
        power: The chance of an answer.
        scores: Look at mean scores of a run instead of pass-rates.
        cluster: Samples with the same value of this metadata key are one unit, of which a run is measured.
        flip_rate: The share of samples that flip from run to run.
        sd: The spread of differences of scores.
        pass_rate: The share of marks that pass; a guess of the noise.
        cluster_size: How many samples a cluster has.
        icc: How alike samples of a cluster are.
    """

    confidence: OpenShare = 0.95
    power: OpenShare = 0.8
    scores: bool = False
    cluster: str | None = None
    flip_rate: Share | None = None
    sd: Annotated[float, Meta(gt=0)] | None = None
    pass_rate: Share | None = None
    cluster_size: Annotated[float, Meta(ge=1)] | None = None
    icc: Share | None = None

    @property
    def goal(self) -> Goal:
        """How certain an answer must be."""
        return Goal(self.confidence, self.power)

    def noise(self) -> Noise | None:
        """The stated noise; None where nothing is stated.

        Raises:
            ConfigurationError: Two things are said that exclude each other.
        """
        if self.flip_rate is not None and self.sd is not None:
            raise ConfigurationError("`flip_rate` is for pass or fail, `sd` for scores. Give one of them.")
        if self.cluster is not None and (self.cluster_size is not None or self.icc is not None):
            raise ConfigurationError("`cluster` measures clusters on a run; leave out what you would guess.")
        if self.icc is not None and self.cluster_size is None:
            raise ConfigurationError("`icc` says how alike samples of a cluster are; give `cluster_size` too.")

        if self.flip_rate is None and self.sd is None and self.pass_rate is None and self.cluster_size is None:
            return None
        return stated_noise(
            pass_rate=self.pass_rate,
            flip_rate=self.flip_rate,
            sd=self.sd,
            cluster_size=self.cluster_size or 1.0,
            icc=USUAL_ICC if self.icc is None else self.icc,
        )


class SizeSettings(PlanSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The same, for the number of samples.

    Attributes:
        sample_cost: What making one more sample costs, in calls; for the split with repetitions.
    """

    sample_cost: Annotated[float, Meta(ge=0)] = 0.0


class LabelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the number of labels rests on.

    Attributes:
        confidence: The level of the interval.
        pass_rate: The share that people pass.
        sd: The spread of people's scores instead.
        samples: All samples that the judge scores; None for endless many.
    """

    confidence: OpenShare = 0.95
    pass_rate: OpenShare = 0.5
    sd: Annotated[float, Meta(gt=0)] | None = None
    samples: Annotated[int, Meta(ge=1)] | None = None

    @property
    def spread(self) -> float:
        """The standard deviation of what people say."""
        return (self.pass_rate * (1 - self.pass_rate)) ** 0.5 if self.sd is None else self.sd
