"""Who watches work that asks models, and may stop it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from deemster.engine.progress import Progress
from deemster.engine.stop_request import Stop


class Watchers(msgspec.Struct, frozen=True):
    """Who watches work that asks models, and may stop it.

    Attributes:
        warn: Gets each warning.
        progress: Gets the progress; None for nobody.
        stop: Asks the work to stop.
    """

    warn: Callable[[str], None]
    progress: Callable[[Progress], None] | None = None
    stop: Stop = msgspec.field(default_factory=Stop)
