"""The dataset of `deemster attack`: the built-in seeds, as they stand and as mutators write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from deemster.datasets.attack_facts import AIMS, KEY, SEVERITIES, AttackSettings
from deemster.datasets.attack_mutators import MUTATORS, mutate_text
from deemster.datasets.golden_dataset import Dataset
from deemster.errors import ConfigurationError, Issue, did_you_mean
from deemster.records import Sample

_SEEDS = Path(__file__).with_name("adversarial_seeds.yml")
NAME = "adversarial"
QUESTION = "question"
CATEGORIES = (
    "prompt-injection",
    "jailbreak",
    "tool-abuse",
    "pii-leak",
    "ssrf",
    "sql-shell-injection",
    "ascii-smuggling",
    "competitor-endorsement",
    "excessive-agency",
    "hallucination-overreliance",
)


class AttackSelection(NamedTuple):
    """Which attacks are made.

    Attributes:
        categories: Take these categories alone; all where it is empty.
        severities: Take these severities alone; all where it is empty.
    """

    categories: tuple[str, ...] = ()
    severities: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse names that do not exist.

        Raises:
            ConfigurationError: There is one; all are listed.
        """
        known: dict[str, tuple[Sequence[str], Sequence[str]]] = {
            "category": (self.categories, CATEGORIES),
            "severity": (self.severities, SEVERITIES),
        }
        issues = [
            Issue(f"No {kind} is called `{name}`. {did_you_mean(name, names)}")
            for kind, (given, names) in known.items()
            for name in given
            if name not in names
        ]
        if issues:
            raise ConfigurationError(issues)

    def __str__(self) -> str:
        return " ".join([*self.categories, *(f"--severity {name}" for name in self.severities)])

    def has(self, sample: Sample) -> bool:
        """Whether an attack is one of them."""
        facts = sample.metadata[KEY]
        fits_category = not self.categories or facts["category"] in self.categories
        return fits_category and (not self.severities or facts["severity"] in self.severities)


EVERY_ATTACK = AttackSelection()


def load_adversarial_seeds() -> Dataset:
    """The built-in seeds: several requests of each category, harmless in themselves.

    Raises:
        DatasetError: The file of the seeds is damaged.
    """
    return Dataset.load(_SEEDS)


def build_adversarial_dataset(
    settings: AttackSettings = AttackSettings(),  # noqa: B008 - immutable
    selection: AttackSelection = EVERY_ATTACK,
) -> Dataset:
    """The attacks as a dataset. The same settings give the same samples.

    Args:
        settings: How they are written, and what no answer may hold or do.
        selection: Which attacks.

    Raises:
        ConfigurationError: A setting names something that does not exist.
        DatasetError: No attack is selected.
    """
    settings.check()
    selection.check()
    seeds = load_adversarial_seeds()
    whole = Dataset([sample for seed in seeds for sample in _variants(seed, settings)], name=_name(settings))
    if selection == EVERY_ATTACK:
        return whole
    wanted = frozenset(sample.id for sample in whole if selection.has(sample))
    return whole.keep(wanted, selection=str(selection))


def _name(settings: AttackSettings) -> str:
    """The name of the dataset: runs with other mutators or another draw have other samples, so another baseline."""
    chosen = "".join(f"+{name}" for name in dict.fromkeys(settings.mutators))
    return f"{NAME}{chosen}+seed-{settings.seed}" if settings.seed else f"{NAME}{chosen}"


def _variants(seed: Sample, settings: AttackSettings) -> Iterator[Sample]:
    """A seed as it stands, then as mutators write it."""
    text = seed.input[QUESTION]
    yield _sample(seed, settings, seed.id, text, None)
    for name in _mutators(seed.id, settings):
        mutated = mutate_text(MUTATORS[name], text, seed=settings.seed, key=seed.id)
        if mutated is not None:
            yield _sample(seed, settings, f"{seed.id}+{name}", mutated, name)
            if not settings.mutators:
                return


def _mutators(key: str, settings: AttackSettings) -> Sequence[str]:
    """The mutators of a seed; where none is asked for, all in a random order, of which the first that works is used."""
    if "all" in settings.mutators:
        return tuple(MUTATORS)
    if settings.mutators:
        return [name for name in dict.fromkeys(settings.mutators) if name != "none"]
    names = list(MUTATORS)
    Random(f"{settings.seed}/{key}").shuffle(names)  # noqa: S311 - a seeded choice, no secret
    return names


def _sample(seed: Sample, settings: AttackSettings, name: str, text: str, mutator: str | None) -> Sample:
    facts = {**seed.metadata[KEY], "seed": seed.id} | ({} if mutator is None else {"mutator": mutator})
    for aim in AIMS:
        if further := getattr(settings, aim):
            facts[aim] = [*dict.fromkeys((*facts.get(aim, ()), *further))]
    return Sample(name, {settings.input_key or QUESTION: text}, None, {**seed.metadata, KEY: facts})
