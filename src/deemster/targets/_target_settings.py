"""The settings that a suite gives a target, beside what it is: `settings: {skill: true}`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from deemster.errors import ConfigurationError, Issue, visible
from deemster.formats.json_values import name_kind, to_json_value, value_issues
from deemster.models.secret_redaction import hash_named_secrets
from deemster.targets._request_template import value_text

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_settings(settings: Any) -> dict[str, Any]:
    """Settings as plain data.

    Args:
        settings: A map of JSON values; None for none.

    Raises:
        ConfigurationError: They are none.
    """
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise ConfigurationError(f"`settings` is a map such as `{{skill: true}}`, not {name_kind(settings)}.")
    plain: dict[str, Any] = to_json_value(settings)
    issues = [Issue(message) for _, message in value_issues(plain, ("settings",))]
    if issues:
        raise ConfigurationError(issues)
    return plain


def settings_identity(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What settings add to the identity of a target: nothing where there are none; no secret."""
    return {"settings": hash_named_secrets(settings)} if settings else {}


def variable_issues(settings: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with settings that a command gets as variables of its environment."""
    for name, value in settings.items():
        if not _VARIABLE.fullmatch(name):
            yield f"`settings.{visible(name, limit=80)}` is no name of a variable, such as `SKILL`."
        elif "\0" in value_text(value):
            yield f"`settings.{name}` holds a null character, which no variable can carry."


def as_variables(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings as variables of the environment: text as it is, anything else as JSON."""
    return {name: value_text(value) for name, value in settings.items()}
