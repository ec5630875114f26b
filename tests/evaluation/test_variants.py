"""Variants of a suite: names and targets of grids and of named ones, their gates, and what is refused."""

from __future__ import annotations

import pytest

from deemster.errors import ConfigurationError
from deemster.evaluation.suite import load_suite
from deemster.evaluation.variants import VariantGates, choose_variants, suite_variants
from deemster.gate import read_gate

REST = "dataset: golden.yml\nmetrics: [exact-match]\n"


def variants(tmp_path, text):
    path = tmp_path / "suite.yml"
    path.write_text(REST + text, encoding="utf-8")
    suite = load_suite(path)
    return suite, suite_variants(suite)


def faults(tmp_path, text):
    with pytest.raises(ConfigurationError) as caught:
        variants(tmp_path, text)
    return [(fault.where.rpartition("/")[2], fault.message) for fault in caught.value.issues]


def test_named_variants_change_the_target_key_by_key(tmp_path):
    _, found = variants(
        tmp_path,
        "target: { python: { function: 'app:answer', timeout_s: 5, retries: 2 } }\n"
        "variants:\n  plain:\n  other: { python: { function: 'app:other', timeout_s: 9 } }\n",
    )
    assert [(each.name, each.levels, each.target.main) for each in found] == [
        ("plain", {}, "app:answer"),
        ("other", {}, "app:other"),
    ]
    assert [dict(each.target.settings) for each in found] == [
        {"timeout_s": 5, "retries": 2},
        {"timeout_s": 9, "retries": 2},
    ]


def test_grid_has_every_combination_the_last_factor_changing_fastest(tmp_path):
    _, found = variants(
        tmp_path,
        "target: { python: { retries: 0 } }\n"
        "variants:\n  python.function: ['a:f', 'b:f']\n  python.timeout_s: [1, 2.5]\n",
    )
    assert [each.name for each in found] == [
        "a:f / timeout_s=1",
        "a:f / timeout_s=2.5",
        "b:f / timeout_s=1",
        "b:f / timeout_s=2.5",
    ]
    assert found[1].levels == {"python.function": "a:f", "python.timeout_s": "2.5"}
    assert [each.target.settings["timeout_s"] for each in found] == [1, 2.5, 1, 2.5]


def test_variant_of_another_kind_takes_the_place_of_the_target(tmp_path):
    (tmp_path / "before.jsonl").write_text("", encoding="utf-8")
    _, found = variants(
        tmp_path,
        "target: { python: 'app:answer', settings: { skill: true } }\n"
        "variants: { now: {}, before: { outputs: before.jsonl } }\n",
    )
    assert [each.target.kind for each in found] == ["python", "outputs"]
    assert [each.target.settings for each in found] == [{"settings": {"skill": True}}, {}]


def test_suite_without_target_may_have_whole_targets_as_variants(tmp_path):
    _, found = variants(tmp_path, "variants: { python: ['app:a', 'app:b'] }\n")
    assert [(each.name, each.target.main) for each in found] == [("app:a", "app:a"), ("app:b", "app:b")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "target: { python: 'a:b' }\nvariants:\n  one: {}\n  two: { python: { function: 'a:c', tiemout_s: 3 } }\n",
            [("suite.yml:6", "Did you mean `timeout_s`?")],
        ),
        ("target: { python: 'a:b' }\nvariants: {}\n", [("suite.yml:4", "is empty.")]),
        ("target: { python: 'a:b' }\nvariants: { python: [] }\n", [("suite.yml:4", "is empty.")]),
        ("variants: { python: ['a:b', 'a:b'] }\n", [("suite.yml:3", "Two variants are called `a:b`.")]),
        (
            "target: { python: 'a:b' }\nvariants: { python: ['a:b'], named: {} }\n",
            [("suite.yml:4", "With a list: `python`. Without: `named`.")],
        ),
        (
            f"variants: {{ python.retries: {list(range(15))}, python.timeout_s: {list(range(14))} }}\n",
            [("suite.yml:3", "These are 210 variants, more than 200 at once")],
        ),
        (
            "target: { python: 'a:b' }\nvariants: { settings: [{ a: 1 }, { a: 2 }], settings.a: [3, 4] }\n",
            [("suite.yml:4", "`settings.a` is a part of `settings`")],
        ),
        ("target: { python: 'a:b' }\nvariants: { 'a\\tb': {}, b: {} }\n", []),
        ("target: { python: 'a:b' }\nvariants: { \"a\\tb\": {}, b: {} }\n", [("suite.yml:4", "a text of one line")]),
    ],
)
def test_what_cannot_be_used_is_said_with_its_line(tmp_path, text, expected):
    if not expected:
        assert len(variants(tmp_path, text)[1]) == 2
        return
    found = faults(tmp_path, text)
    assert [where for where, _ in found] == [where for where, _ in expected]
    for (_, message), (_, part) in zip(found, expected, strict=True):
        assert part in message


def test_variants_are_chosen_by_names_and_globs(tmp_path):
    _, found = variants(tmp_path, "variants: { python: ['app:a', 'app:b', 'lib:c'] }\n")
    assert [each.name for each in choose_variants(found, ["app:*"])] == ["app:a", "app:b"]
    assert [each.name for each in choose_variants(found, ["lib:c", "app:a"])] == ["app:a", "lib:c"]
    assert choose_variants(found, []) == found
    with pytest.raises(ConfigurationError, match=r"no variant `app:x`\. Did you mean `app:"):
        choose_variants(found, ["app:x"])


def gates(tmp_path, gate, run=None):
    suite, found = variants(tmp_path, f"variants: {{ python: ['app:a', 'app:b'] }}\ngate: {gate}\n")
    names = [each.name for each in found]
    known = VariantGates(suite, found, run or names)
    return known.baseline, [known.of(name, experiment="exp-1") for name in names]


def test_gate_holds_for_every_variant_or_for_those_it_names(tmp_path):
    assert gates(tmp_path, "{ min_pass_rate: 0.9 }") == (None, [{"min_pass_rate": 0.9}] * 2)
    assert gates(tmp_path, "{ min_pass_rate: 0.9, variants: ['*:b'] }") == (None, [{}, {"min_pass_rate": 0.9}])
    with pytest.raises(ConfigurationError, match=r"`gate.variants`: there is no variant `app:c`\. Did you mean `app:"):
        gates(tmp_path, "{ variants: ['app:c'] }")
    # A gate that held for nobody would always pass.
    _, (first, _) = gates(tmp_path, "{ min_pass_rate: 0.9, variants: [] }")
    with pytest.raises(ConfigurationError, match=r"gate\.variants"):
        read_gate(first)


def test_gate_that_compares_with_a_variant_finds_it_in_the_experiment(tmp_path):
    gate = "{ min_pass_rate: 0.9, baseline: { compare: 'app:a', margin: 0.1 } }"
    compared = {"min_pass_rate": 0.9, "baseline": {"compare": "exp-1/app:a", "margin": 0.1}}
    assert gates(tmp_path, gate) == ("app:a", [{"min_pass_rate": 0.9}, compared])
    # One that is not run now is the latest run of that name.
    baseline, (_, other) = gates(tmp_path, gate, run=["app:b"])
    assert (baseline, other["baseline"]["compare"]) == (None, "app:a")
