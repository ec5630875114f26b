"""Prompts in Jinja2: files that end in `.j2`, for what placeholders cannot say, such as a loop over passages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deemster.errors import ConfigurationError, Issue, MissingExtraError, did_you_mean
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.formats.json_values import to_json_value
from deemster.targets._request_template import value_text

try:
    import jinja2
    from jinja2 import meta
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError:
    raise MissingExtraError("A prompt that ends in `.j2`", extra="jinja") from None


class _Missing(jinja2.StrictUndefined):
    """A name that the input lacks; using it is an error that names the nearest one."""

    @property
    def _undefined_message(self) -> str:
        entries, name = self._undefined_obj, str(self._undefined_name)
        if not isinstance(entries, Mapping):
            return super()._undefined_message
        near = f" {did_you_mean(name, entries)}" if entries else ""
        return f"The input has no `{name}`.{near}"


class _Sandbox(ImmutableSandboxedEnvironment):
    """Runs a template with no access to anything but the sample's input."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        # A key such as `items` is the sample's, not the method of that name.
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


def _shown(value: Any) -> Any:
    """What stands in a prompt for a value: as for a placeholder."""
    return value if isinstance(value, (str, jinja2.Undefined)) else value_text(value)


_SANDBOX = _Sandbox(undefined=_Missing, finalize=_shown, autoescape=False)


def template_names(source: str, *, where: str | None) -> set[str]:
    """The names that a template takes from outside.

    Args:
        source: The template.
        where: Its file.

    Raises:
        ConfigurationError: It is no template, or names what no target is given.
    """
    try:
        names = meta.find_undeclared_variables(_SANDBOX.parse(source)) - _SANDBOX.globals.keys()
    except jinja2.TemplateSyntaxError as error:
        place = None if where is None else f"{where}:{error.lineno}"
        raise ConfigurationError(Issue(f"The template cannot be read: {error.message}", place)) from None

    if unknown := sorted(names - {"input"}):
        raise ConfigurationError(
            Issue(f"`{name}` names nothing a target is given. Write `{{{{ input.{name} }}}}` for the sample's.", where)
            for name in unknown
        )
    return names


def fill_template(source: str, sample_input: Mapping[str, Any]) -> str:
    """The text of a template for one sample.

    Args:
        source: The template.
        sample_input: What the sample gives the target.

    Raises:
        LookupError: The input lacks something that the template names, or it cannot be filled in.
    """
    with UserCodeGuard() as caught:
        return _SANDBOX.from_string(source).render(input=to_json_value(sample_input))
    what = caught.error.message if isinstance(caught.error, jinja2.UndefinedError) else None
    raise LookupError(what or f"The template cannot be filled in: {caught.message.rstrip('.')}.")
