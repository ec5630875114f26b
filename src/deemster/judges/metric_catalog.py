"""The catalog of metrics: from names, specs, import paths, plug-ins and groups to metrics."""

from __future__ import annotations

import importlib
import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from numbers import Real
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from deemster.datasets.where_condition import AUTO, parse_condition
from deemster.errors import ConfigurationError, Issue, MissingExtraError, did_you_mean, list_names, show_value
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.judges._metric_table import PLACES, PRESETS, SHORT
from deemster.judges.metric_groups import metric_group
from deemster.metrics.builtin_metric import BuiltinScorer, UnscoredError, output_text
from deemster.metrics.import_user_code import import_object
from deemster.metrics.metric_signature import reads_output_text
from deemster.metrics.metric_spec import format_options, parse_spec
from deemster.metrics.option_checks import describe_type
from deemster.records import Metric, MetricCard, MetricScore, Output, Sample, Unscored, Where

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OPTIONS = frozenset({"name", "threshold", "where"})


class AdjustedMetric:
    """A custom metric with options that every metric takes (`name`, `threshold`, `where`), or one that reads text.

    Args:
        metric: The metric itself.
        options: Those of the three that are given.
        reads_text: Whether its `score` and `script` take the output's text in place of the output.

    Raises:
        ConfigurationError: An option is not what it should be.
    """

    def __init__(self, metric: Metric, options: dict[str, Any], *, reads_text: bool = False) -> None:
        name: Any = options.get("name", metric.name)
        threshold: Any = options.get("threshold")
        if not isinstance(name, str) or not name.strip():
            raise ConfigurationError(f"`name` of `{metric.name}` is non-blank text, not {name!r:.80}.")
        if "threshold" in options and (type(threshold) not in (int, float) or not 0 <= threshold <= 1):
            raise ConfigurationError(f"`threshold` of `{name}` is a number between 0 and 1, not {threshold!r:.80}.")
        if (where := options.get("where")) is not None:
            options = {**options, "where": parse_condition(where, called=name)}
        self.metric = metric
        self.options = options
        self.reads_text = reads_text
        self.name = name
        self.threshold = getattr(metric, "threshold", None) if threshold is None else float(threshold)
        self.where = options.get("where", getattr(metric, "where", None))

    def __getattr__(self, name: str) -> Any:
        if name in ("metric", "options", "reads_text") or (name == "script_many" and self.reads_text):
            raise AttributeError(name)
        # Without `score_many` the engine scores pair by pair, and every mark gets its pass mark.
        if name == "score_many" and (self.reads_text or "threshold" in self.options):
            raise AttributeError(name)
        found = getattr(self.metric, name)
        return partial(_script_with_text, found) if name == "script" and self.reads_text else found

    def score(self, sample: Sample, output: Output) -> Any:
        """Mark one output, against the given pass mark."""
        try:
            # Where the metric reads text, its annotation is not that of the protocol.
            given: Any = output_text(output) if self.reads_text else output
        except UnscoredError as error:
            return Unscored(error.cause, error.message)
        mark = self.metric.score(sample, given)
        if isinstance(mark, MetricScore) and self.threshold is not None and "threshold" in self.options:
            return msgspec.structs.replace(mark, threshold=self.threshold)
        return mark


def _script_with_text(script: Any, sample: Sample, output: Output) -> Any:
    try:
        text = output_text(output)
    except UnscoredError as error:
        return Unscored(error.cause, error.message)
    return (yield from script(sample, text))


GROUP = "deemster.metrics"
WORKED_EXAMPLES = "Worked examples:"
_ROOMS = ("deemster.metrics.", "deemster.judges.")
_OF_PRESETS = ("threshold", "higher_is_better", "fields", "steps", "rubric")


class CatalogOption(NamedTuple):
    """One option of a metric, as a person reads it."""

    name: str
    type: str
    default: Any


class CatalogEntry(NamedTuple):
    """One metric of the catalog, as a person reads it.

    Attributes:
        name: Its alias.
        short: Its short name, where it has one.
        family: The family it belongs to.
        summary: What it measures, in one line.
        doc: What it reads and returns, and its options.
        examples: Samples and outputs with which its page shows it, in YAML.
        options: Its options, with defaults.
        reads: The metadata keys it reads.
        reads_expected: Whether it reads `expected_output`.
        core: Whether it is one of the fifteen.
        quotes: The details that may repeat text of a sample or output.
        prompt: What it asks a model, where it asks one and needs no option for that.
        needs: What a sample must have for it where no option gives it: `where: auto` looks for that.
        extra: The extra of this package that must be installed for it; None where none must.
    """

    name: str
    short: str | None
    family: str
    summary: str
    doc: str
    examples: str
    options: tuple[CatalogOption, ...]
    reads: tuple[str, ...]
    reads_expected: bool
    core: bool
    quotes: frozenset[str]
    prompt: str | None = None
    needs: tuple[str, ...] = ()
    extra: str | None = None


def parse_metric(text: str, *, search: str | PathLike[str] | None = None) -> Metric:
    """The metric that a spec, an alias or an import path names; `parse_metric(str(metric)) == metric`.

    Args:
        text: Such as `rouge-l`, `ndcg(gain=exponential)@10`, `app.scoring:Tone`.
        search: A directory in which import paths are looked up first.

    Raises:
        ConfigurationError: Nothing is called that, or an option is unknown, missing or out of range.
    """
    name, options = parse_spec(text)
    return _make_metric(name, options, search=search)


def resolve(entry: Any, *, search: str | PathLike[str] | None = None) -> Metric:
    """The metric that one entry of a suite or one argument of `evaluate` stands for.

    Args:
        entry: A metric, a spec, or a map of one alias to its options (or to null).
        search: A directory in which import paths are looked up first.

    Raises:
        ConfigurationError: The entry names no metric, or an option is unknown, missing or out of range.
    """
    if isinstance(entry, str):
        return parse_metric(entry, search=search)
    if isinstance(entry, Mapping):
        if len(entry) != 1:
            hint = f" Write `- {entry['name']}: {{...}}`." if isinstance(entry.get("name"), str) else ""
            raise ConfigurationError(f"A metric with options is a map of one name to them, not of {len(entry)}.{hint}")
        ((name, options),) = entry.items()
        return _with_options(name, options, search=search)
    return _check_metric(entry)


def resolve_all(
    entries: Iterable[Any],
    *,
    search: str | PathLike[str] | None = None,
    place: Callable[[Sequence[int]], str | None] = lambda _: None,
) -> tuple[Metric, ...]:
    """The metrics of a suite, in its order.

    Args:
        entries: What `resolve` takes.
        search: A directory in which import paths are looked up first.
        place: Where an entry stands, by its position; without one, where the list does.

    Raises:
        ConfigurationError: With every issue: no metrics, two of one name, and whatever `resolve` refuses.
    """
    if isinstance(entries, (str, Mapping)) or not isinstance(entries, Iterable):
        raise ConfigurationError("The metrics are a list, such as [exact-match, rouge-l].")
    issues: list[Issue] = []
    metrics: list[Metric] = []
    for position, entry in enumerate(entries):
        try:
            metrics.append(resolve(entry, search=search))
        except ConfigurationError as error:
            issues += [issue._replace(where=issue.where or place((position,))) for issue in error.issues]
        except MissingExtraError as error:
            issues.append(Issue(f"{error}.", place((position,))))
    issues += [issue._replace(where=place(())) for issue in name_issues(metrics)]
    if not metrics and not issues:
        issues.append(Issue("There are no metrics. Name at least one, such as `exact-match`.", place(())))
    if issues:
        raise ConfigurationError(dict.fromkeys(issues))
    return tuple(metrics)


def name_issues(metrics: Sequence[Metric]) -> list[Issue]:
    """An issue for every name that two metrics have."""
    names = Counter(metric.name for metric in metrics)
    twice = (name for name, count in names.items() if count > 1)
    return [Issue(f"Two metrics are called `{name}`. Give one of them another `name`.") for name in twice]


def spec(metric: Metric) -> str:
    """How a metric is written: the canonical spec of a built-in metric, `module:name` of a custom one."""
    if _is_built_in(metric):
        return str(metric)
    if isinstance(metric, AdjustedMetric):
        return spec(metric.metric) + format_options(metric.options)
    named: Any = metric if hasattr(metric, "__wrapped__") else type(metric)
    if not hasattr(named, "__qualname__"):
        # A wrapped callable object, such as a `partial`, has no name in the code.
        return f"{named.__module__}:{metric.name}"
    return f"{named.__module__}:{named.__qualname__}"


def identity(metric: Metric) -> str:
    """What makes two metrics the same across runs: spec, or ``portable_spec`` where it has one, and version.

    >>> identity(parse_metric("json-valid"))
    'json-valid v1'
    """
    named = metric.portable_spec if _is_built_in(metric) and hasattr(metric, "portable_spec") else _bare_spec(metric)
    return f"{named} v{getattr(metric, 'version', '1')}"


def _bare_spec(metric: Any) -> str:
    """The spec without `where`, which chooses samples and changes no mark."""
    if isinstance(metric, AdjustedMetric):
        return spec(metric.metric) + format_options(_without_where(metric.options))
    return spec(msgspec.structs.replace(metric, where=None) if _is_built_in(metric) else metric)


def _without_where(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key != "where"}


def where_of(metric: Any) -> Where | None:
    """The samples that a metric applies to; None for all. `auto` stands for those that have what the metric reads.

    Raises:
        ConfigurationError: A custom metric has a `where` that is none, or `auto` and does not say what it needs.
    """
    given = getattr(metric, "where", None)
    if given is None:
        return None
    where = parse_condition(given, called=metric.name)
    if where != AUTO:
        return where
    needs = getattr(metric, "needs", None)
    if needs is None:
        raise ConfigurationError(
            f"`where: auto` applies a metric to samples that have what it reads, and `{metric.name}` does not say what "
            "that is. Give it `needs`, a tuple of names such as `citations`, or write `where: {has: ...}`."
        )
    return Where(has=(needs,) if isinstance(needs, str) else tuple(needs), auto=True) if needs else None


def family(metric: Metric) -> str:
    """The family of a metric; `custom` where it is not ours."""
    return str(getattr(metric, "family", "custom")) if _is_built_in(metric) else "custom"


def quotes(metric: Metric) -> frozenset[str] | None:
    """The details that may repeat text of a sample or output.

    None where a custom metric does not say: all its strings, lists and maps count.
    """
    named = getattr(metric, "quotes", None)
    if named is None:
        return None
    return frozenset((named,) if isinstance(named, str) else named)


def quotes_of_spec(text: str) -> frozenset[str] | None:
    """The details of a built-in metric that may repeat text; None for user code, which is not loaded."""
    try:
        describe(text)
        return quotes(parse_metric(text))
    except ConfigurationError:
        return None


def card(metric: Metric, *, threshold: float | None = None) -> MetricCard:
    """What reports say of a metric beside its numbers.

    Args:
        metric: The metric.
        threshold: The pass mark that replaces its own, if any.
    """
    own = getattr(metric, "threshold", None)
    return MetricCard(
        name=metric.name,
        spec=_bare_spec(metric),
        identity=identity(metric),
        family=family(metric),
        quotes=quotes(metric),
        threshold=_pass_mark(own if threshold is None else threshold),
        higher_is_better=bool(getattr(metric, "higher_is_better", True)),
        parts=tuple(str(part) for part in getattr(metric, "parts", ())),
        roles=tuple(str(role) for role in getattr(metric, "roles", ())),
        where=where_of(metric),
    )


def card_spellings(cards: Iterable[MetricCard]) -> dict[str, str]:
    """Every way to call metrics (by name, by spec), with the name it stands for."""
    known = list(cards)
    return {card.spec: card.name for card in known} | {card.name: card.name for card in known}


def metric_spellings(metrics: Iterable[Metric]) -> dict[str, str]:
    """Every way to call metrics (by name, by spec), with the name it stands for."""
    return card_spellings(map(card, metrics))


def _pass_mark(value: Any) -> float | None:
    """A pass mark as a number; user code may give anything, and then every mark says what is wrong."""
    return float(value) if isinstance(value, Real) and math.isfinite(value) else None


def entries() -> tuple[CatalogEntry, ...]:
    """The metrics of this package, by family, in the order of the table."""
    return tuple(_entry(alias) for alias in (*PLACES, *PRESETS))


def describe(name: str) -> CatalogEntry:
    """One metric of this package, by alias, short name or spec.

    Raises:
        ConfigurationError: No metric is called that.
    """
    head = parse_spec(name).name
    alias = SHORT.get(head, head)
    if alias not in PLACES and alias not in PRESETS:
        raise _unknown(head, _plugins())
    return _entry(alias)


def _entry(alias: str) -> CatalogEntry:
    metric = _metric_class(PRESETS.get(alias, alias))
    defaults = {"name": alias if "k" not in metric.__struct_fields__ else "the alias", "threshold": metric.pass_mark}
    reads, reads_expected = metric.reads, metric.reads_expected
    doc, _, examples = (inspect.getdoc(metric) or "").partition(f"\n\n{WORKED_EXAMPLES}\n")
    if alias in PRESETS:
        from deemster.judges.geval_definition import load_preset  # noqa: PLC0415 - reads its file

        given = load_preset(alias)
        defaults |= {option: getattr(given, option) for option in _OF_PRESETS} | {"preset": alias}
        reads, reads_expected = reads & set(given.fields), "expected_output" in given.fields
        doc = f"{given.about}\n\nReady-made: `{PRESETS[alias]}` with `preset: {alias}`.\n\n{doc}"
    options = tuple(
        CatalogOption(field.name, describe_type(field.type), defaults.get(field.name, _default(field)))
        for field in msgspec.structs.fields(metric)
    )
    made = _make_plain(alias)
    needs: tuple[str, ...] = () if made is None else made.needs
    if made is None and metric.extra is not None and reads_expected:
        # Without its extra a metric cannot be made, and its class says what it needs.
        needs = ("expected_output",)
    return CatalogEntry(
        name=alias,
        short=metric.short,
        family=metric.family,
        summary=doc.partition("\n")[0],
        doc=doc,
        examples=examples,
        options=options,
        reads=tuple(sorted(reads)),
        reads_expected=reads_expected,
        core=metric.core,
        quotes=metric.quotes,
        prompt=None if made is None or not hasattr(made, "prompt_text") else str(made.prompt_text()),
        needs=needs,
        extra=metric.extra,
    )


def _make_plain(alias: str) -> Any:
    """A metric without options; None where it cannot be made so, or lacks its extra."""
    try:
        return parse_metric(alias)
    except (ConfigurationError, MissingExtraError):
        return None


def _default(field: Any) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return None if field.default is msgspec.NODEFAULT else field.default


def _metric_class(alias: str) -> type[BuiltinScorer]:
    module, _, name = PLACES[alias].partition(":")
    return cast("type[BuiltinScorer]", getattr(importlib.import_module(f"deemster.{module}"), name))


def _is_built_in(metric: Any) -> bool:
    return isinstance(metric, BuiltinScorer) and type(metric).__module__.startswith(_ROOMS)


def _with_options(name: Any, options: Any, *, search: str | PathLike[str] | None) -> Metric:
    if not isinstance(name, str):
        raise ConfigurationError(f"A metric's name is text, not {show_value(name)}.")
    if _can_score(options):
        return _check_metric(options, f"`{name}`", {"name": name})
    if options is not None and not isinstance(options, Mapping):
        raise ConfigurationError(f"The options of `{name}` are a map, not {show_value(options)}.")
    head, given = parse_spec(name)
    for key, value in (options or {}).items():
        if not isinstance(key, str):
            raise ConfigurationError(f"The options of `{name}` have names, not {show_value(key)}.")
        if key in given:
            raise ConfigurationError(f"`{key}` of `{name}` is given twice.")
        given[key] = value
    return _make_metric(head, given, search=search)


def _make_metric(name: str, options: dict[str, Any], *, search: str | PathLike[str] | None) -> Metric:
    alias = SHORT.get(name, name)
    if alias in PLACES:
        placed = getattr(_metric_class(alias), "placed", None)
        return cast("Metric", _make_built_in(alias, name, options if placed is None else placed(options, search)))
    if alias in PRESETS:
        if options.get("preset", alias) != alias:
            raise ConfigurationError(
                f"`{name}` is a preset itself and takes no other, such as {show_value(options['preset'])}."
            )
        return cast("Metric", _make_built_in(PRESETS[alias], name, {"preset": alias, **options}))
    plugins = _plugins()
    if name in plugins:
        plugin = plugins[name]
        return _make_custom(import_object(plugin.value, called=f"The plug-in `{name}`"), f"Plug-in `{name}`", options)
    if ":" in name:
        return _make_custom(import_object(name, called="The metric", search=search), f"`{name}`", options)
    if isinstance(options.get("use"), str):
        raise ConfigurationError(f"To call a metric by a name of your own, write `{options['use']}: {{name: {name}}}`.")
    raise _unknown(name, plugins)


def _make_built_in(alias: str, name: str, options: dict[str, Any]) -> BuiltinScorer:
    metric = _metric_class(alias)
    known = metric.__struct_fields__
    issues = []
    for option in options:
        if option == "k" and "k" not in known:
            issues.append(Issue(f"`{name}` takes no `@k`."))
        elif option not in known:
            issues.append(Issue(f"`{name}` has no option `{option}`. {did_you_mean(option, known)}"))
    issues += [
        Issue(f"`{name}` needs the option `{field.name}`.")
        for field in msgspec.structs.fields(metric)
        if field.required and field.name not in options
    ]
    given = options.get("name", "")
    if given is not None and (not isinstance(given, str) or (given and not given.strip())):
        issues.append(Issue(f"`name` of `{name}` is non-blank text, not {show_value(given)}."))
    if issues:
        raise ConfigurationError(issues)
    return metric(**{option: value for option, value in options.items() if option != "name" or value is not None})


def _make_custom(found: Any, called: str, options: dict[str, Any]) -> Metric:
    general = {key: options[key] for key in options if key in OPTIONS}
    own = {key: options[key] for key in options if key not in OPTIONS}
    if not isinstance(found, type):
        if own:
            raise ConfigurationError(f"{called} is an instance already and takes no option {list_names(own)}.")
        return _check_metric(found, called, general)
    # `where` is never an option of the class: it does not change how an output is marked.
    if _accepts(found, _without_where(options)):
        own, general = _without_where(options), {key: options[key] for key in ("where",) if key in options}
    with UserCodeGuard() as caught:
        return _check_metric(found(**own), called, general)
    if isinstance(caught.error, ConfigurationError):
        raise caught.error
    raise ConfigurationError(f"{called} cannot be made with these options: {caught.message}") from caught.error


def _accepts(kind: type, options: dict[str, Any]) -> bool:
    """Whether a class can be called with all of these options, `name` and `threshold` among them."""
    with UserCodeGuard() as caught:
        inspect.signature(kind).bind(**options)
    return caught.error is None


def _check_metric(metric: Any, called: str | None = None, options: dict[str, Any] | None = None) -> Metric:
    """Check that a value is a metric; messages call it by the given name, or show its value."""
    is_class, name = isinstance(metric, type), getattr(metric, "name", None)
    if _can_score(metric) and isinstance(name, str) and name.strip():
        reads_text = not (_is_built_in(metric) or isinstance(metric, AdjustedMetric)) and reads_output_text(metric)
        return (
            cast("Metric", AdjustedMetric(metric, options or {}, reads_text=reads_text))
            if options or reads_text
            else cast("Metric", metric)
        )
    called = called or f"`{show_value(metric)}`"
    if is_class:
        raise ConfigurationError(f"{called} is a class; give an instance, such as `{metric.__name__}()`.")
    hint = " A function becomes one with `@deemster.metric`." if inspect.isroutine(metric) else ""
    if callable(name):
        hint = ' Here `name` is a method: make it an attribute, such as `name = "tone"`.'
    raise ConfigurationError(f"{called} is no metric: it needs a `name` and a `score(sample, output)`.{hint}")


def _can_score(metric: Any) -> bool:
    by_method = callable(getattr(metric, "score", None)) or callable(getattr(metric, "script", None))
    return by_method and not isinstance(metric, type)


@cache
def _plugins() -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - metrics that come with deemster need none of it

    found: dict[str, EntryPoint] = {}
    issues = []
    for point in entry_points(group=GROUP):
        other = found.setdefault(point.name, point)
        if point.name in PLACES or point.name in SHORT or point.name in PRESETS:
            issues.append(Issue(f"The plug-in `{point.value}` calls its metric `{point.name}`, which is taken."))
        elif other.value != point.value:
            issues.append(
                Issue(f"The plug-ins `{other.value}` and `{point.value}` both call their metric `{point.name}`.")
            )
    if issues:
        raise ConfigurationError(issues)
    return found


def _unknown(name: str, plugins: Mapping[str, EntryPoint]) -> ConfigurationError:
    module, _, attribute = name.rpartition(".")
    path = f" A metric of your own has a colon before its name: `{module}:{attribute}`." if module and attribute else ""
    near = did_you_mean(name, [*PLACES, *PRESETS, *SHORT, *plugins])
    return ConfigurationError(f"No metric is called `{name}`.{path or f' {near}'}")


def with_group(name: str, metrics: Sequence[Any], aggregator: Any) -> tuple[list[Any], Any]:
    """The given metrics followed by those of a group, and the aggregator of the group.

    Args:
        name: The group's name.
        metrics: Metric entries beside it.
        aggregator: What was declared beside it; the group has one of its own.

    Raises:
        ConfigurationError: No group is called that, or an aggregator is declared beside it.
    """
    found = metric_group(name)
    if aggregator is not None:
        raise ConfigurationError(f"The group `{name}` has an aggregator of its own; leave `aggregator` out.")
    # Last, so that the given metrics keep their places in the file.
    return [*metrics, *found.metrics], found.aggregator


def names_of_group(name: str) -> tuple[str, ...]:
    """The names of a group's metrics in a run.

    Args:
        name: The group's name.

    Raises:
        ConfigurationError: No group is called that.
    """
    return tuple(metric.name for metric in resolve_all(metric_group(name).metrics))
