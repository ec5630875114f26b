"""The metric `ordinal-distance`: how far apart are two labels on an ordered scale?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec

from deemster.errors import ConfigurationError
from deemster.metrics._text_normalization import normalize_text, parse_normalize_option
from deemster.metrics.builtin_metric import BuiltinMetric, expected_text, invalid_sample, unscorable_sample
from deemster.records import MetricScore, Sample


class _Place(NamedTuple):
    positions: Mapping[str, int]
    place: int


class OrdinalDistance(BuiltinMetric, frozen=True, kw_only=True):
    """How near the output's label comes to the expected one on an ordered scale.

    Reads the expected label (text) and the scale: `metadata.ordinal_scale`, else the option `scale`. An answer off the
    scale scores 0; an expected label off it is unscored.
    Options: `scale`, two or more distinct labels from lowest to highest; `credit`, `step` (1, 0.5, then 0 for equal,
    neighbouring and farther labels) or `linear` (1 - d/(n - 1) for d levels apart of n); `normalize`, true or a list of
    `nfc`, `casefold`, `strip`.
    Details: expected_index, actual_index, distance, on_scale, levels.
    Example: on low, medium, high, urgent with high expected, urgent scores 0.5 (linear 0.6667), low 0 (linear 0.3333).

    Worked examples:
        - {expected: high, output: urgent, options: {scale: [low, medium, high, urgent]}}
        - {expected: high, output: urgent, options: {scale: [low, medium, high, urgent], credit: linear}}
        - {expected: high, output: low, options: {scale: [low, medium, high, urgent]}}
    """

    alias: ClassVar[str] = "ordinal-distance"
    core: ClassVar[bool] = True
    family: ClassVar[str] = "ordinal-citation"
    reads: ClassVar[frozenset[str]] = frozenset({"ordinal_scale"})

    scale: Sequence[str] | None = None
    credit: Literal["step", "linear"] = "step"
    normalize: Sequence[str] | bool | None = ()

    def validate(self) -> None:
        """Refuse a scale that orders nothing.

        Raises:
            ConfigurationError: `scale` or `normalize` is not what it should be.
        """
        msgspec.structs.force_setattr(self, "normalize", parse_normalize_option(self.normalize))
        if self.scale is not None:
            try:
                _positions_of(self.scale, steps=self._steps)
            except ValueError as error:
                raise ConfigurationError(f"`scale` of {self.alias} {error}.") from None
            msgspec.structs.force_setattr(self, "scale", tuple(self.scale))

    @property
    def _steps(self) -> tuple[str, ...]:
        return self.normalize  # type: ignore[return-value] # validate() made it a tuple

    @property
    def needs(self) -> tuple[str, ...]:
        """The expected label, and the scale where the metric has none."""
        return ("expected_output",) if self.scale is not None else ("expected_output", "ordinal_scale")

    def expect(self, sample: Sample) -> _Place:
        """The scale and the place of the expected label on it.

        Raises:
            UnscoredError: The scale is invalid or missing, or the label is not on it.
        """
        given = sample.metadata.get("ordinal_scale")
        try:
            positions = _positions_of(self.scale if given is None else given, steps=self._steps)
        except ValueError as error:
            raise invalid_sample(f"`metadata.ordinal_scale` {error}.") from None
        label = expected_text(sample)
        if positions is None:
            raise unscorable_sample("The sample has no `metadata.ordinal_scale`, and the metric was given no `scale`.")
        index = positions.get(normalize_text(label, self._steps))
        if index is None:
            raise unscorable_sample("`expected_output` is not a label of the scale.")
        return _Place(positions, index)

    def grade(self, expected: _Place, actual: str) -> MetricScore:
        """Credit by the number of levels between the two labels."""
        levels = len(expected.positions)
        index = expected.positions.get(normalize_text(actual, self._steps))
        distance = None if index is None else abs(index - expected.place)
        details = {
            "expected_index": expected.place,
            "actual_index": index,
            "distance": distance,
            "on_scale": index is not None,
            "levels": levels,
        }
        return self.mark(0.0 if distance is None else credit_for(distance, levels=levels, credit=self.credit), details)


def credit_for(distance: int, *, levels: int, credit: str) -> float:
    """The credit for a label some levels away from the expected one.

    >>> [credit_for(d, levels=4, credit="step") for d in range(4)]
    [1.0, 0.5, 0.0, 0.0]
    >>> credit_for(1, levels=3, credit="linear")
    0.5
    """
    if credit == "step":
        return (1.0, 0.5, 0.0)[min(distance, 2)]
    # One division only, so that two steps of four give exactly 0.5.
    return (levels - 1 - distance) / (levels - 1)


def _positions_of(scale: Any, *, steps: tuple[str, ...]) -> Mapping[str, int] | None:
    if scale is None:
        return None
    if not isinstance(scale, (list, tuple)) or not all(type(label) is str for label in scale):
        raise ValueError("is a list of labels, each of them text")
    return _positions(tuple(scale), steps)


@lru_cache(maxsize=256)
def _positions(scale: tuple[str, ...], steps: tuple[str, ...]) -> Mapping[str, int]:
    if len(scale) < 2:
        raise ValueError("has two or more labels")
    labels = [normalize_text(label, steps) for label in scale]
    if not all(label.strip() for label in labels):
        raise ValueError("has an empty label")
    positions = {label: index for index, label in enumerate(labels)}
    if len(positions) < len(labels):
        raise ValueError("has the same label twice" + (" once normalized" if len(set(scale)) == len(scale) else ""))
    return positions
