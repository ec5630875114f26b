"""What a terminal shows."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from rich.console import Console

from deemster.text.terminal_layout import print_sections
from deemster.text.text_sections import TextSection


def printed(sections: Iterable[TextSection], *, width: int = 120, **console: Any) -> str:
    """What sections look like on a terminal of a width."""
    text = io.StringIO()
    print_sections(sections, Console(file=text, width=width, **console))
    return text.getvalue()
