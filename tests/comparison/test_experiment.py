"""Experiments: the answer that the runs of several variants give together."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import numpy as np
import pytest

from deemster.comparison.compare_columns import ComparisonSettings
from deemster.comparison.compare_runs import rank_sources
from deemster.comparison.experiment import MissingVariant, VariantSource, build_experiment
from deemster.errors import ReportError
from deemster.text.terminal_layout import plain_text
from tests.results.make_compared_runs import run

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "deemster.experiment.v1.json").read_text(encoding="utf-8"))


class Columns:
    """A source of a run that is made from lists."""

    cluster = None

    def __init__(self, columns):
        self._columns = columns

    def columns(self, *, cluster):
        return self._columns


def passing(share, samples, *, shift=0, **options):
    """A run of which a share passes: the samples from a place on, round and round."""
    scores = np.zeros(samples)
    scores[(np.arange(round(share * samples)) + shift) % samples] = 1.0
    return run({"m": scores.tolist()}, **options)


def variant(name, columns, **levels):
    return VariantSource(name, levels, Columns(columns))


def grid(rates, *, samples=200, costs=None):
    """A grid of prompts and chats, by the names of both the share that passes."""
    sources = []
    for place, ((prompt, chat), rate) in enumerate(rates.items()):
        usage = None if costs is None else [[costs[place], 10, 500 + 100 * place]] * samples
        columns = passing(rate, samples, usage=usage)
        sources.append(variant(f"{prompt} / {chat}", columns, prompt=prompt, chat=chat))
    return sources


def built(sources, **options):
    return build_experiment(sources, id="x1", name="refunds", **options)


def shown(experiment, *, width=200):
    return plain_text(experiment.sections(), width=width)


RATES = {("short", "mini"): 0.6, ("short", "local"): 0.5, ("polite", "mini"): 0.9, ("polite", "local"): 0.8}


def test_best_variant_is_named_with_its_lead_over_the_others():
    assert built(grid(RATES)).verdict == "polite / mini is best: 4 to 50 points above the others."


def test_ranking_is_the_one_of_a_comparison_of_the_runs():
    sources = grid(RATES)
    alone = rank_sources([source.source for source in sources])
    inside = built(sources).ranking
    assert inside.pairs == alone.pairs
    assert [entry.figures for entry in inside.runs] == [entry.figures for entry in alone.runs]


def test_experiment_fits_its_schema():
    experiment = built(grid(RATES, costs=[0.001, 0.002, 0.003, 0.004]))
    jsonschema_rs.validator_for(SCHEMA).validate(json.loads(experiment.to_json()))


def test_effect_of_a_factor_is_averaged_over_the_other():
    experiment = built(grid(RATES))
    prompt, chat = experiment.factors
    (contrast,) = prompt.contrasts
    assert (contrast.first, contrast.second, contrast.better) == ("short", "polite", "polite")
    assert contrast.difference == pytest.approx(0.3)
    assert chat.contrasts[0].difference == pytest.approx(-0.1)
    assert experiment.interactions[0].difference == pytest.approx(0.0)
    assert "prompt: polite is better than short by 23 to 37 points, averaged over chat." in shown(experiment)


def test_factors_that_depend_on_each_other_point_at_the_variants():
    rates = {**RATES, ("polite", "local"): 0.5}
    experiment = built(grid(rates))
    assert experiment.interactions[0].is_shown
    assert [factor.depends_on for factor in experiment.factors] == [("chat",), ("prompt",)]
    text = shown(experiment)
    assert "averaged over" not in text
    assert (
        "prompt depends on chat: from short to polite it gains 23 to 37 points more with mini than with local." in text
    )
    assert "With mini, polite is better than short by" in text
    assert "With local, no difference is shown between short and polite." in text


def test_missing_variant_is_named_and_the_average_says_what_it_leaves_out():
    sources = grid({cell: rate for cell, rate in RATES.items() if cell != ("polite", "local")})
    missing = MissingVariant(
        name="polite / local", levels={"prompt": "polite", "chat": "local"}, reason="its key is bad"
    )
    experiment = built(sources, missing=[missing])
    text = shown(experiment)
    assert "Warning: polite / local is missing: its key is bad." in text
    assert "averaged over chat; not counting chat local, where a variant is missing." in text
    assert experiment.matrix.pass_rates == ((0.6, 0.5), (0.9, None))


def test_three_factors_are_averaged_over_all_others():
    sources = [
        variant(f"{a}{b}{c}", passing(0.5 + 0.2 * a + 0.1 * b, 200), a=str(a), b=str(b), c=str(c))
        for a in (0, 1)
        for b in (0, 1)
        for c in (0, 1)
    ]
    experiment = built(sources)
    effects = {factor.factor: factor.contrasts[0] for factor in experiment.factors}
    assert [effects[name].difference for name in "abc"] == pytest.approx([0.2, 0.1, 0.0])
    assert [effects[name].better for name in "abc"] == ["1", "1", None]
    assert "a: 1 is better than 0 by" in shown(experiment)
    assert experiment.matrix is None


def test_cheapest_that_is_not_shown_to_be_worse_is_named():
    rates = {**RATES, ("short", "mini"): 0.89}
    experiment = built(grid(rates, costs=[0.001, 0.0005, 0.003, 0.004]))
    assert (experiment.cheapest.name, experiment.cheapest.highest) == ("short / mini", "polite / mini")
    assert "not shown to be worse than polite / mini: short / mini, $0.10 in place of $0.30 for 100." in shown(
        experiment
    )


def test_with_a_margin_the_cheapest_is_shown_to_be_worse_by_less():
    rates = {**RATES, ("short", "mini"): 0.89}
    sources = grid(rates, costs=[0.001, 0.0005, 0.003, 0.004])
    assert built(sources, settings=ComparisonSettings(margin=0.2)).cheapest.margin == 0.2
    assert built(sources, settings=ComparisonSettings(margin=0.02)).cheapest is None


def test_experiment_without_any_score_is_refused():
    class Nothing(Columns):
        def columns(self, *, cluster):
            raise ReportError("`x` has no scores of metrics.")

    with pytest.raises(ReportError, match="No variant of the experiment `x1` has a score"):
        built([VariantSource("a", {}, Nothing(None))])
    experiment = built([VariantSource("a", {}, Nothing(None)), *grid(RATES)])
    assert experiment.missing[0].name == "a"
