"""What `metadata.adversarial` says of a sample: category, severity, frameworks, and what the attack is after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from deemster.datasets.attack_mutators import MutatorName
from deemster.errors import ConfigurationError, did_you_mean, show_value
from deemster.formats.json_values import name_kind
from deemster.formats.schema_validation import NonBlank, Seed, decode_struct
from deemster.records import Sample

KEY = "adversarial"
Severity = Literal["low", "medium", "high", "critical"]
# Mildest first.
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
UNCATEGORISED = "(uncategorised)"
# What an attack is after; each may be a text or a list of texts.
AIMS = ("canary", "forbidden_tools", "private_patterns")


class AttackSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The settings of attacks: how they are made, and what no answer may hold or do.

    Attributes:
        mutators: Write each seed with each of these beside its own words; `all` of them or `none`. Where it is empty,
            each seed gets one, drawn by the seed of the draw.
        seed: The seed of what is drawn.
        input_key: The key of the input that holds the request; None for `question`.
        canary: Texts that no answer may hold, beside those of the samples.
        forbidden_tools: Tools that no answer may call, beside those of the samples.
        private_patterns: Patterns of RE2 that no answer may match, beside those of the samples.
    """

    mutators: tuple[MutatorName | Literal["all", "none"], ...] = ()
    seed: Seed = 0
    input_key: NonBlank | None = None
    canary: tuple[NonBlank, ...] = ()
    forbidden_tools: tuple[NonBlank, ...] = ()
    private_patterns: tuple[NonBlank, ...] = ()

    def check(self) -> None:
        """Refuse what is not as declared.

        Raises:
            ConfigurationError: A mutator does not exist, or stands beside `none`.
        """
        decode_struct(self, error=ConfigurationError)
        if "none" in self.mutators and len(set(self.mutators)) > 1:
            raise ConfigurationError("`none` stands for no mutator: give it alone.")


class Attack(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A kind of attack.

    Attributes:
        category: Such as `prompt-injection`.
        severity: How bad it is when the attack succeeds; None where the sample does not say.
        frameworks: By the name of a framework, its items that the attack belongs to.
        refusal_expected: Whether the application should refuse; None where the sample does not say.
    """

    category: str = UNCATEGORISED
    severity: Severity | None = None
    frameworks: dict[str, tuple[str, ...]] = {}
    refusal_expected: bool | None = None


class AttackedSample(NamedTuple):
    """A sample of a run that is an attack.

    Attributes:
        position: Its place in the dataset.
        kind: The place of its kind among the kinds of the run.
        seed: The seed that it was made from; its id where it was not made from one.
        mutator: The mutator that wrote it; None where it stands as its seed does.
    """

    position: int
    kind: int
    seed: str
    mutator: str | None = None


class AttackedSamples(msgspec.Struct, frozen=True, kw_only=True):
    """The samples of a run that are attacks.

    Attributes:
        kinds: The kinds of attack.
        samples: The samples, in the order of the dataset.
    """

    kinds: tuple[Attack, ...]
    samples: tuple[AttackedSample, ...]


class AttackCollector:
    """Collects the attacks among samples, one sample after the other."""

    def __init__(self) -> None:
        self._kinds: dict[bytes, int] = {}
        self._attacks: list[Attack] = []
        self._samples: list[AttackedSample] = []

    def add(self, position: int, sample: Sample) -> tuple[str, ...]:
        """Note a sample, where it is an attack; returns what is wrong with its `metadata.adversarial`.

        Args:
            position: Its place in the dataset.
            sample: The sample.
        """
        try:
            attack = read_attack(sample)
        except ValueError as error:
            return (str(error),)
        if attack is None:
            return ()
        kind = self._kinds.setdefault(msgspec.json.encode(attack, order="deterministic"), len(self._attacks))
        if kind == len(self._attacks):
            self._attacks.append(attack)
        facts = _facts(sample)
        seed, mutator = (each if isinstance(each, str) else None for each in (facts.get("seed"), facts.get("mutator")))
        self._samples.append(AttackedSample(position, kind, seed or sample.id, mutator))
        return ()

    def collected(self) -> AttackedSamples | None:
        """The attacks; None where there is none."""
        if not self._samples:
            return None
        return AttackedSamples(kinds=tuple(self._attacks), samples=tuple(self._samples))


def _facts(sample: Sample) -> Mapping[str, Any]:
    said = sample.metadata.get(KEY)
    return said if isinstance(said, Mapping) else {}


def read_attack(sample: Sample) -> Attack | None:
    """The attack that a sample is; None where `metadata.adversarial` is absent, null or false.

    Args:
        sample: The sample. `metadata.adversarial: true` marks it without saying more, a text names its category.

    Raises:
        ValueError: Its `metadata.adversarial` cannot be read; the message is a sentence.

    >>> read_attack(Sample("a", {}, None, {"adversarial": {"category": "ssrf", "severity": "high"}}))
    Attack(category='ssrf', severity='high', frameworks={}, refusal_expected=None)
    """
    said = sample.metadata.get(KEY)
    if said is None or said is False:
        return None
    refusal = sample.metadata.get("refusal_expected")
    expected = refusal if type(refusal) is bool else None
    if said is True:
        return Attack(refusal_expected=expected)
    if isinstance(said, str):
        said = {"category": said}
    if not isinstance(said, Mapping):
        raise ValueError(f"`metadata.{KEY}` is true, a category or a map, not {name_kind(said)}.")  # noqa: TRY004 - a fault of data
    severity = said.get("severity")
    if severity is not None and severity not in SEVERITIES:
        given = severity if isinstance(severity, str) else show_value(severity)
        raise ValueError(f"No severity is called `{given}`. {did_you_mean(given, SEVERITIES)}")
    frameworks = said.get("frameworks") or {}
    if not isinstance(frameworks, Mapping):
        raise ValueError(f"`metadata.{KEY}.frameworks` is a map of a framework to its items.")  # noqa: TRY004 - as above
    return Attack(
        category=_text(said.get("category", UNCATEGORISED), "category"),
        severity=severity,
        frameworks={name: _texts(items, f"frameworks.{name}") for name, items in frameworks.items()},
        refusal_expected=expected,
    )


def attack_aims(sample: Sample) -> dict[str, tuple[str, ...]]:
    """What the attack of a sample is after, by aim: canaries, forbidden tools, private patterns.

    Args:
        sample: The sample.

    Raises:
        ValueError: Its `metadata.adversarial` cannot be read; the message is a sentence.
    """
    return {aim: _texts(said, aim) for aim in AIMS if (said := _facts(sample).get(aim)) is not None}


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"`metadata.{KEY}.{key}` is a text, not {show_value(value)}.")
    return value


def _texts(value: Any, key: str) -> tuple[str, ...]:
    listed: Sequence[Any] = value if isinstance(value, (list, tuple)) else (value,)
    return tuple(_text(each, key) for each in listed)
