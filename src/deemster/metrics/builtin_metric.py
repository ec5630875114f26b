"""The base of all built-in metrics and judges: options, spec, threshold, checks, unscored marks."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from deemster.datasets.where_condition import parse_condition
from deemster.errors import ConfigurationError, Issue, show_value
from deemster.formats.json_values import name_kind
from deemster.metrics.metric_spec import format_spec
from deemster.metrics.option_checks import check_options
from deemster.records import Cause, Mark, MetricScore, Output, Sample, Unscored, Where

SHOWN = 20
_GENERAL = ("name", "threshold", "where")


def list_detail(key: str, words: Iterable[str]) -> dict[str, Any]:
    """A detail that lists words, cut at 20 with `truncated: true`.

    Lone surrogates, which no JSON writer takes, become question marks.

    >>> list_detail("missing", ["a"])
    {'missing': ['a']}
    """
    shown = [_writable(word) for word in islice(words, SHOWN + 1)]
    if len(shown) > SHOWN:
        return {key: shown[:SHOWN], "truncated": True}
    return {key: shown}


def json_pointer(path: Iterable[str | int]) -> str:
    """A place within a JSON value, as RFC 6901 writes it.

    >>> json_pointer(["a/b", 0])
    '/a~1b/0'
    """
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1') if isinstance(step, str) else step}" for step in path)


def _writable(word: str) -> str:
    return word if word.isascii() else word.encode("utf-8", "replace").decode()


class UnscoredError(Exception):
    """A sample or output that a metric cannot read.

    Attributes:
        cause: The cause of the unscored mark.
        message: What was wrong and what was expected.
        stops_run: Whether the run must not start; else the mark is unscored.
    """

    def __init__(self, cause: Cause, message: str, *, stops_run: bool = False) -> None:
        super().__init__(message)
        self.cause: Cause = cause
        self.message = message
        self.stops_run = stops_run


def unscorable_sample(message: str) -> UnscoredError:
    """The error of a sample that lacks what the metric reads: a warning, then an unscored mark."""
    return UnscoredError("bad_sample", message)


def invalid_sample(message: str) -> UnscoredError:
    """The error of a sample that no run should start with."""
    return UnscoredError("bad_sample", message, stops_run=True)


class _NamedOptions(msgspec.StructMeta):
    """Makes metrics from options that are named, and says so where one is not."""

    def __call__(self, *unnamed: Any, **options: Any) -> Any:
        if unnamed:
            first = next((name for name in self.__struct_fields__ if name not in _GENERAL), "threshold")
            raise ConfigurationError(f"The options of {self.__name__} have names: write {self.__name__}({first}=...).")
        return super().__call__(**options)


class BuiltinScorer(msgspec.Struct, metaclass=_NamedOptions, frozen=True, kw_only=True):
    """A metric or judge as a value: its fields are its options, its text is its canonical spec.

    Its `where` says which samples it applies to; it does not change the mark of any of them. An option that is declared
    as a boolean, as words (`Literal`) or as a number with limits is checked by that declaration.

    A subclass declares all of it: the class variables, and in its docstring one sentence for the catalog, what it reads
    and gives, its options, and `Worked examples:`, from which its page computes marks. What else names it is made from
    that: see website/metric_declarations.py. It overrides ``expect`` where the sample asks for more than its expected
    text.

    Raises:
        ConfigurationError: An option is missing or out of range.
    """

    alias: ClassVar[str]
    short: ClassVar[str | None] = None
    family: ClassVar[str]
    core: ClassVar[bool] = False
    version: ClassVar[str] = "1"
    quotes: ClassVar[frozenset[str]] = frozenset()
    reads: ClassVar[frozenset[str]] = frozenset()
    reads_expected: ClassVar[bool] = True
    pass_mark: ClassVar[float] = 0.5
    extra: ClassVar[str | None] = None

    name: str = ""
    threshold: float | None = None
    where: Where | Mapping[str, Any] | str | None = None

    def __post_init__(self) -> None:
        threshold = self.pass_mark if self.threshold is None else self.threshold
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not 0 <= threshold <= 1:
            raise ConfigurationError(
                f"`threshold` of {self.alias} is a number between 0 and 1, not {show_value(threshold)}."
            )
        msgspec.structs.force_setattr(self, "threshold", float(threshold))
        check_options(self, called=self.alias)
        self.validate()
        if not self.name:
            msgspec.structs.force_setattr(self, "name", self.default_name())
        if self.where is not None:
            msgspec.structs.force_setattr(self, "where", parse_condition(self.where, called=self.name))

    def validate(self) -> None:
        """Refuse options that make no sense.

        Raises:
            ConfigurationError: An option is missing or out of range.
        """

    def default_name(self) -> str:
        """The name where none was given: the alias, or the short name with k where k was given."""
        k = getattr(self, "k", None)
        return self.alias if k is None else f"{self.short or self.alias}@{k}"

    def defaults(self) -> dict[str, Any]:
        """What options are that were not given, where the class alone does not say it."""
        return {"name": self.default_name(), "threshold": self.pass_mark}

    def __str__(self) -> str:
        return format_spec(self)

    @property
    def needs(self) -> tuple[str, ...]:
        """What a sample must have for it, as in `where: {has: ...}`: `where: auto` stands for that."""
        return ("expected_output",) if self.reads_expected else ()

    def seen(self, sample: Sample) -> Sample:
        """The sample as the metric reads it.

        Raises:
            UnscoredError: It lacks what an option names.
        """
        return sample

    def expect(self, sample: Sample) -> Any:
        """What the sample asks of the output: its expected text.

        Raises:
            UnscoredError: The sample lacks it, or holds something unreadable.
        """
        return expected_text(sample)

    def read(self, output: Output) -> Any:
        """The part of the output this metric looks at: its text.

        Raises:
            UnscoredError: The output cannot be read.
        """
        return output_text(output)

    def check(self, sample: Sample) -> Sequence[Issue]:
        """Find what is wrong with a sample, before anything runs."""
        try:
            self.expect(self.seen(sample))
        except UnscoredError as error:
            return (Issue(error.message, warning=not error.stops_run),)
        return ()

    def mark(self, score: float, details: dict[str, Any]) -> MetricScore:
        """A score of this metric, with its threshold."""
        return MetricScore(score, details, None, self.threshold)  # type: ignore[arg-type]


class BuiltinMetric(BuiltinScorer, frozen=True, kw_only=True):
    """A metric that needs no model.

    A subclass implements ``grade`` (how near the output comes) and overrides ``read`` where it looks at more than the
    output's text.
    """

    if TYPE_CHECKING:

        def grade(self, expected: Any, actual: Any) -> Mark:
            """Mark what was read against what was expected.

            Raises:
                UnscoredError: The pair is beyond what this metric marks.
            """

    def score(self, sample: Sample, output: Output) -> Mark:
        """Mark one output."""
        try:
            return self.grade(self.expect(self.seen(sample)), self.read(output))
        except UnscoredError as error:
            return Unscored(error.cause, error.message)


class TextCheck(BuiltinMetric, frozen=True, kw_only=True):
    """A metric that looks for what is expected in the output's text.

    What is expected may stand in the metadata (`expected`), so that one sample can be checked for several texts, and it
    may be what the output must not have (`negate`).
    """

    family: ClassVar[str] = "lexical"

    expected: str | None = None
    negate: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.expected is not None and (not isinstance(self.expected, str) or not self.expected.strip()):
            raise ConfigurationError(
                f"`expected` of {self.alias} is a key of the metadata, not {show_value(self.expected)}."
            )

    @property
    def needs(self) -> tuple[str, ...]:
        """Where what is expected stands."""
        return (self.expected or "expected_output",)

    def seen(self, sample: Sample) -> Sample:
        """The sample with what is expected as its expected output."""
        return with_expected(sample, self.expected)

    def mark(self, score: float, details: dict[str, Any]) -> MetricScore:
        """A score of this metric, or what it lacks to 1, with its threshold."""
        return super().mark(1 - score if self.negate else score, details)


def with_expected(sample: Sample, key: str | None) -> Sample:
    """The sample, with what its metadata has under a key as its expected output; without a key as it is.

    Raises:
        UnscoredError: There is nothing under the key.
    """
    if key is None:
        return sample
    expected = sample.metadata.get(key)
    if expected is None:
        raise UnscoredError("no_expected", f"The sample has no `metadata.{key}`, which this metric reads.")
    return msgspec.structs.replace(sample, expected_output=expected)


def output_text(output: Output) -> str:
    """The output's text.

    Raises:
        UnscoredError: It holds a lone surrogate.
    """
    text = output.text
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UnscoredError("bad_output", f"The output is not valid Unicode at character {error.start}.") from None
    return text


def expected_text(sample: Sample) -> str:
    """The expected output as text; a number as it is written.

    Raises:
        UnscoredError: It is null, or of another type.
    """
    if sample.expected_output is None:
        raise no_expected()
    return _as_text(sample.expected_output, "expected_output")


def no_expected() -> UnscoredError:
    """The sample has no expected output, and the metric reads one."""
    return UnscoredError("no_expected", "The sample has no `expected_output`, which this metric reads.")


def expected_texts(sample: Sample) -> tuple[str, ...]:
    """The expected output as one or more texts, from a text or a list of texts.

    Raises:
        UnscoredError: It is null, of another type, or an empty list.
    """
    expected = sample.expected_output
    if not isinstance(expected, (list, tuple)):
        return (expected_text(sample),)
    if not expected:
        raise unscorable_sample("`expected_output` is an empty list; at least one text is needed.")
    return tuple(_as_text(entry, f"expected_output[{index}]") for index, entry in enumerate(expected))


def _as_text(value: Any, place: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # Python writes no number of more than 4,300 digits.
        with contextlib.suppress(ValueError):
            return json.dumps(value)
    hint = f' Quote it: "{show_value(value).lower()}".' if isinstance(value, bool) else ""
    raise unscorable_sample(f"`{place}` is text here, not {name_kind(value)}.{hint}")
