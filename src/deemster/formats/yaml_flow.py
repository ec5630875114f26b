"""Writes YAML in its flow style, on one line."""

from __future__ import annotations

import re
from typing import Any

from deemster.formats.canonical_json import json_text

# What libyaml refuses as it stands, or takes for a line end; inside JSON text such a character is always in a string.
_UNWRITABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
# A longer key needs the sign of an explicit key.
_LONGEST_KEY = 1000


def yaml_flow(value: Any) -> str:
    """A value in the flow style of YAML: JSON, but for what libyaml cannot read in it."""
    return _UNWRITABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", _flow_text(value))


def _flow_text(value: Any) -> str:
    if isinstance(value, dict):
        entries = (
            f"{'? ' * (len(key) > _LONGEST_KEY)}{json_text(key)}: {_flow_text(entry)}" for key, entry in value.items()
        )
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_flow_text, value)) + "]"
    return json_text(value)
