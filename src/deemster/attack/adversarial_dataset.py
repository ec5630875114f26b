"""The dataset of `deemster attack`: the built-in seeds, as they stand and as mutators write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from deemster.datasets.attack_facts import AIMS, KEY, SEVERITIES
from deemster.datasets.attack_mutators import MUTATORS, mutate_text
from deemster.datasets.golden_dataset import Dataset
from deemster.errors import ConfigurationError, Issue, did_you_mean
from deemster.records import Sample

_SEEDS = Path(__file__).with_name("adversarial_seeds.yml")
NAME = "adversarial"
QUESTION = "question"
SEED = 0
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
ALL, NO_MUTATOR = "all", "none"


class AttackSettings(NamedTuple):
    """Which attacks are made, and how.

    Attributes:
        categories: Take these categories alone; all where it is empty.
        severities: Take these severities alone; all where it is empty.
        mutators: Write each seed with each of these beside its own words; `all` of them or `none`. Where it is empty,
            each seed gets one, drawn by the seed of the draw.
        seed: The seed of what is drawn.
        input_key: The key of the input that holds the request; None for `question`.
        canary: Texts that no answer may hold, beside those of the samples.
        forbidden_tools: Tools that no answer may call, beside those of the samples.
        private_patterns: Patterns of RE2 that no answer may match, beside those of the samples.
    """

    categories: tuple[str, ...] = ()
    severities: tuple[str, ...] = ()
    mutators: tuple[str, ...] = ()
    seed: int = SEED
    input_key: str | None = None
    canary: tuple[str, ...] = ()
    forbidden_tools: tuple[str, ...] = ()
    private_patterns: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse names that do not exist.

        Raises:
            ConfigurationError: There is one; all are listed.
        """
        known: dict[str, tuple[Sequence[str], Sequence[str]]] = {
            "category": (self.categories, CATEGORIES),
            "severity": (self.severities, SEVERITIES),
            "mutator": (self.mutators, (*MUTATORS, ALL, NO_MUTATOR)),
        }
        issues = [
            Issue(f"No {kind} is called `{name}`. {did_you_mean(name, names)}")
            for kind, (given, names) in known.items()
            for name in given
            if name not in names
        ]
        if NO_MUTATOR in self.mutators and len(set(self.mutators)) > 1:
            issues.append(Issue("`none` stands for no mutator: give it alone."))
        if issues:
            raise ConfigurationError(issues)

    def selection(self) -> str:
        """The categories and severities as flags of `deemster attack`."""
        words = [*self.categories] + [f"--severity {name}" for name in self.severities]
        return " ".join(words)

    def name(self) -> str:
        """The name of the dataset: runs with other mutators or another draw have other samples, so another baseline."""
        chosen = "".join(f"+{name}" for name in dict.fromkeys(self.mutators))
        return f"{NAME}{chosen}" if self.seed == SEED else f"{NAME}{chosen}+seed-{self.seed}"


def load_adversarial_seeds() -> Dataset:
    """The built-in seeds: several requests of each category, harmless in themselves.

    Raises:
        DatasetError: The file of the seeds is damaged.
    """
    return Dataset.load(_SEEDS)


def build_adversarial_dataset(settings: AttackSettings = AttackSettings()) -> Dataset:  # noqa: B008 - immutable
    """The attacks as a dataset. The same settings give the same samples.

    Args:
        settings: Which attacks, and how they are written.

    Raises:
        ConfigurationError: A setting names something that does not exist.
        DatasetError: No attack fits the settings.
    """
    settings.check()
    seeds = load_adversarial_seeds()
    whole = Dataset([sample for seed in seeds for sample in _variants(seed, settings)], name=settings.name())
    if not settings.categories and not settings.severities:
        return whole
    wanted = [sample.id for sample in whole if _is_wanted(sample, settings)]
    return whole.keep(frozenset(wanted), selection=settings.selection())


def _is_wanted(sample: Sample, settings: AttackSettings) -> bool:
    facts = sample.metadata[KEY]
    fits_category = not settings.categories or facts["category"] in settings.categories
    return fits_category and (not settings.severities or facts["severity"] in settings.severities)


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
    if ALL in settings.mutators:
        return tuple(MUTATORS)
    if settings.mutators:
        return [name for name in dict.fromkeys(settings.mutators) if name != NO_MUTATOR]
    names = list(MUTATORS)
    Random(f"{settings.seed}/{key}").shuffle(names)  # noqa: S311 - a seeded choice, no secret
    return names


def _sample(seed: Sample, settings: AttackSettings, name: str, text: str, mutator: str | None) -> Sample:
    facts = {**seed.metadata[KEY], "seed": seed.id} | ({} if mutator is None else {"mutator": mutator})
    for aim in AIMS:
        if further := getattr(settings, aim):
            facts[aim] = [*dict.fromkeys((*facts.get(aim, ()), *further))]
    return Sample(name, {settings.input_key or QUESTION: text}, None, {**seed.metadata, KEY: facts})
