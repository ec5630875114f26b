"""The progress bar of a run in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from deemster.engine.progress import Progress

_SECONDS_BETWEEN_UPDATES = 0.2


def notebook_progress() -> Callable[[Progress], None] | None:
    """Show how far a run is, as a bar below the cell of a notebook that runs it; None outside of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    # A shell in a terminal has no kernel.
    if getattr(shell, "kernel", None) is None:
        return None
    from IPython import display as ipython_display  # noqa: PLC0415 - a notebook has it

    show: Any = ipython_display
    handle: Any = None
    last = 0.0

    def update(state: Progress) -> None:
        nonlocal handle, last
        now = time.monotonic()
        if state.done < state.total and now - last < _SECONDS_BETWEEN_UPDATES:
            return
        last = now
        bar = show.HTML(progress_html(state))
        if handle is None:
            handle = show.display(bar, display_id=True)
        else:
            handle.update(bar)

    return update


def progress_html(state: Progress) -> str:
    """A bar, how much is done, what is unscored, and what the models have cost.

    >>> progress_html(Progress(3, 4, 1))
    '<progress value="3" max="4"></progress> 3 of 4 done, 1 unscored'
    """
    costs = [usage.cost_usd for usage in state.spent.values() if usage is not None and usage.cost_usd is not None]
    cost = f", {sum(costs):.4f} USD" if costs else ""
    bar = f'<progress value="{state.done}" max="{state.total}"></progress>'
    return f"{bar} {state.done:,} of {state.total:,} done, {state.unscored:,} unscored{cost}"
