"""The figures that plots are drawn on: they show themselves in a notebook, and stay out of pyplot's global state."""

from __future__ import annotations

import functools
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deemster.errors import InputError, MissingExtraError, visible
from deemster.formats.json_values import name_kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours that colour-blind readers tell apart (Okabe, Ito): the main one, better, worse.
INK = "#24416b"
BETTER = "#0072b2"
WORSE = "#d55e00"
_LABEL = 40


@functools.cache
def _figure_class() -> type[Figure]:
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an optional extra, loaded where it is used
    except ImportError:
        raise MissingExtraError("A plot", extra="plot") from None

    class NotebookFigure(Figure):
        """A figure that a notebook shows, with or without pyplot."""

        def _repr_png_(self) -> bytes:
            data = io.BytesIO()
            self.savefig(data, format="png", dpi=120, bbox_inches="tight")
            return data.getvalue()

    return NotebookFigure


def open_axes(ax: Axes | None, *, width: float = 7.0, height: float = 4.0) -> tuple[Figure, Axes]:
    """The axes to draw on, and their figure.

    Args:
        ax: The axes that the caller gives; None for those of a figure of its own.
        width: The width of that figure in inches.
        height: Its height.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    if ax is not None:
        figure: Any = ax.get_figure()
        return figure, ax
    (panel,), figure = open_panels(1, width=width, height=height)
    return figure, panel


def open_panels(count: int, *, width: float, height: float, columns: int = 1) -> tuple[Sequence[Axes], Figure]:
    """Axes in rows and columns, and their figure.

    Args:
        count: How many axes.
        width: The width of the figure in inches.
        height: Its height.
        columns: How many stand beside each other.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = _figure_class()(figsize=(width, height), layout="constrained")
    rows = -(-count // columns)
    return [figure.add_subplot(rows, columns, place + 1) for place in range(count)], figure


def label(text: str) -> str:
    """Text from data as a label: on one line, cut, and without formulas, which dollar signs would begin."""
    return visible(text, limit=_LABEL).replace("$", r"\$")


def refuse(value: Any, wanted: str) -> InputError:
    """The error about something that cannot be drawn."""
    return InputError(f"This plot is drawn of {wanted}, not of {name_kind(value)}.")
