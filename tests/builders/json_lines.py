"""Files of JSON lines."""

from __future__ import annotations

import json
from typing import Any


def json_lines(*rows: Any) -> str:
    """One line of JSON for each row."""
    return "".join(json.dumps(row) + "\n" for row in rows)
