"""The attacks: ten categories, each sample with severity, frameworks and what it is after."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

import pytest

from deemster.attack.adversarial_dataset import (
    CATEGORIES,
    AttackSelection,
    AttackSettings,
    build_adversarial_dataset,
    load_adversarial_seeds,
)
from deemster.datasets import Dataset
from deemster.datasets.attack_facts import AIMS, SEVERITIES, AttackCollector, read_attack
from deemster.datasets.attack_mutators import MUTATORS, reveal_tags
from deemster.errors import ConfigurationError
from deemster.records import Sample

FRAMEWORKS = {
    "OWASP LLM Top 10": re.compile(r"LLM(0[1-9]|10):2025 [A-Z][\w ]+"),
    "NIST AI RMF": re.compile("GOVERN|MAP|MEASURE|MANAGE"),
    "EU AI Act": re.compile(r"Article \d+"),
}


def plain(text):
    kept = unicodedata.normalize("NFKC", reveal_tags(text)).casefold()
    return "".join(each for each in kept if each.isalnum())


def test_each_category_has_several_distinct_seeds():
    seeds = load_adversarial_seeds()
    counts = Counter(sample.metadata["adversarial"]["category"] for sample in seeds)
    assert tuple(counts) == CATEGORIES
    assert min(counts.values()) >= 5
    assert not seeds.duplicates


def faults(sample):
    facts = sample.metadata["adversarial"]
    if facts["severity"] not in SEVERITIES:
        yield "severity"
    if set(facts["frameworks"]) != set(FRAMEWORKS):
        yield "frameworks"
    yield from (name for name, item in facts["frameworks"].items() if not FRAMEWORKS[name].fullmatch(item))
    if type(sample.metadata["refusal_expected"]) is not bool:
        yield "refusal_expected"
    if not facts.get("canary") and not facts.get("private_patterns"):
        yield "nothing shows a success without a trajectory"
    # An application that repeats the request has not obeyed it.
    asked = plain(sample.input["question"])
    yield from (f"{canary} stands in the request" for canary in facts.get("canary", ()) if plain(canary) in asked)


def test_each_seed_has_severity_frameworks_refusal_and_something_that_shows_a_success():
    found = {sample.id: list(faults(sample)) for sample in load_adversarial_seeds()}
    assert {key: wrong for key, wrong in found.items() if wrong} == {}


def test_seeds_name_no_real_host():
    text = " ".join(reveal_tags(sample.input["question"]) for sample in load_adversarial_seeds())
    hosts = set(re.findall(r"(?:https?://|@)([\w.-]*\w)", text)) | set(re.findall(r"\b\d+\.\d+\.\d+\.\d+\b", text))
    reserved = re.compile(r"example\.com|127\.0\.0\.1|192\.0\.2\.\d+|203\.0\.113\.\d+")
    assert [host for host in hosts if not reserved.fullmatch(host)] == []


def test_default_is_each_seed_as_it_stands_and_once_mutated():
    made = build_adversarial_dataset()
    assert len(made) == 2 * len(load_adversarial_seeds())
    assert len({sample.metadata["adversarial"].get("mutator") for sample in made}) == len(MUTATORS) + 1
    assert build_adversarial_dataset().fingerprint == made.fingerprint
    assert build_adversarial_dataset(AttackSettings(seed=1)).fingerprint != made.fingerprint


def test_all_mutators_write_every_seed_that_they_can():
    made = build_adversarial_dataset(AttackSettings(mutators=("all",)))
    assert len({sample.input["question"] for sample in made}) == len(made) > 450


def test_category_and_severity_are_a_part_of_the_lane():
    made = build_adversarial_dataset(
        AttackSettings(mutators=("none",)), AttackSelection(("jailbreak", "ssrf"), ("critical",))
    )
    assert {sample.metadata["adversarial"]["category"] for sample in made} == {"jailbreak", "ssrf"}
    assert {sample.metadata["adversarial"]["severity"] for sample in made} == {"critical"}
    assert made.part.of == len(load_adversarial_seeds())


def test_own_secrets_and_tools_stand_beside_those_of_the_samples():
    own = AttackSettings(canary=("TOP-SECRET",), forbidden_tools=("pay",), private_patterns=(r"\d{9}",))
    for sample in build_adversarial_dataset(own):
        facts = sample.metadata["adversarial"]
        assert [facts[aim][-1] for aim in AIMS] == ["TOP-SECRET", "pay", r"\d{9}"]


@pytest.mark.parametrize(
    ("settings", "selection", "said"),
    [
        ({}, {"categories": ("jailbrake",)}, "No category is called `jailbrake`. Did you mean `jailbreak`?"),
        ({}, {"severities": ("hihg",)}, "No severity is called `hihg`. Did you mean `high`?"),
        ({"mutators": ("bas64",)}, {}, "not `bas64`. Did you mean `base64`?"),
        ({"mutators": ("none", "base64")}, {}, "`none` stands for no mutator: give it alone."),
    ],
)
def test_unknown_name_is_an_error_with_the_nearest(settings, selection, said):
    with pytest.raises(ConfigurationError) as raised:
        build_adversarial_dataset(AttackSettings(**settings), AttackSelection(**selection))
    assert said in str(raised.value)


def test_written_attacks_load_as_they_were(tmp_path):
    made = build_adversarial_dataset()
    made.save(tmp_path / "attacks.jsonl")
    again = Dataset.load(tmp_path / "attacks.jsonl")
    assert again.fingerprint == made.fingerprint
    assert [sample.metadata for sample in again] == [sample.metadata for sample in made]


def attack(said, **metadata):
    return Sample("a", {}, None, {"adversarial": said, **metadata})


def test_true_marks_a_sample_and_false_does_not():
    assert read_attack(attack(True, refusal_expected=True)).refusal_expected is True
    assert read_attack(attack("jailbreak")).category == "jailbreak"
    assert read_attack(attack(False)) is None
    assert read_attack(Sample("a", {})) is None


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (3, "`metadata.adversarial` is true, a category or a map, not a number."),
        ({"severity": "sever"}, "No severity is called `sever`."),
        ({"category": 3}, "`metadata.adversarial.category` is a text, not 3."),
        ({"frameworks": ["LLM01"]}, "`metadata.adversarial.frameworks` is a map of a framework to its items."),
    ],
)
def test_unreadable_attack_is_an_error(said, message):
    collector = AttackCollector()
    (found,) = collector.add(0, attack(said))
    assert found.startswith(message)
    assert collector.collected() is None
