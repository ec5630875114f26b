"""Experiments: the answer that the runs of several variants give together."""

from __future__ import annotations

import csv
import functools
import io
import json
import math
import re
from pathlib import Path

import jsonschema_rs
import msgspec
import numpy as np
import pytest
from hypothesis import given
from markdown_it import MarkdownIt

import deemster as dm
from deemster.comparison.compare_columns import ComparisonSettings
from deemster.comparison.compare_runs import rank_sources
from deemster.comparison.experiment import Experiment, MissingVariant, VariantSource, build_experiment
from deemster.comparison.experiment_report import experiment_comment, experiment_overview
from deemster.comparison.find_runs import RunSources
from deemster.comparison.without_text import experiment_without_text
from deemster.errors import ReportError
from deemster.gate import GateCheck, GateDecision
from deemster.results.metric_summary import NOT_RUN
from deemster.text.terminal_layout import plain_text
from tests.builders.arguments import arguments
from tests.report.comparisons import HOSTILE
from tests.report.test_report_sections import MARKDOWN, NAMES, QUICK, parsed
from tests.results.make_compared_runs import run

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "deemster.experiment.v1.json").read_text(encoding="utf-8"))


class Columns:
    """A source of a run that is made from lists."""

    cluster = None
    margin = None

    def __init__(self, columns, gate=None):
        self._columns = columns
        self.gate = gate

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


SPEC = {("short", "mini"): 0.75, ("short", "local"): 0.74, ("polite", "mini"): 0.86, ("polite", "local"): 0.84}
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


def decided(decision, **statuses):
    """A gate whose checks have these statuses."""
    checks = [
        GateCheck(name=name, observed=None, low=None, high=None, required=0.5, status=status, because="of it")
        for name, status in statuses.items()
    ]
    return GateDecision(decision=decision, mode="three-way", checks=tuple(checks))


def test_line_below_the_verdict_says_what_the_gate_decided_of_each_variant():
    gates = {
        "held": decided("pass", pass_rate="pass"),
        "slow": decided("fail", p95_latency_s="fail", cost_usd="inconclusive", pass_rate="pass"),
        "kept": decided("pass", pass_rate="pass", cost_usd="skipped"),
        "open": decided("inconclusive", macro_f1="inconclusive"),
        "left": decided("pass", baseline="skipped"),
        "free": None,
    }
    columns = passing(0.5, 50)
    experiment = built([VariantSource(name, {}, Columns(columns, gate)) for name, gate in gates.items()])
    line = (
        "Gate: pass for held and kept; fail for slow (p95_latency_s and cost_usd); inconclusive for open (macro_f1); "
        "not decided for left."
    )
    assert shown(experiment).splitlines()[1] == line
    in_code = "Gate: pass for <code>held</code> and <code>kept</code>; fail for <code>slow</code> ("
    assert in_code in experiment.to_markdown()
    assert in_code in experiment_comment(experiment)
    assert "; inconclusive for " in experiment.to_html()
    written = json.loads(experiment.to_json())
    jsonschema_rs.validator_for(SCHEMA).validate(written)
    assert written["gates"].keys() == gates.keys() - {"free"}
    assert written["gates"]["slow"] == {"status": "fail", "checks": ["p95_latency_s", "cost_usd"]}
    assert experiment_without_text(experiment).gates == experiment.gates


def test_experiment_without_a_gate_does_not_speak_of_one():
    experiment = built(grid(RATES))
    assert experiment.gates == {}
    assert "Gate" not in shown(experiment)


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


def test_factor_of_one_level_is_no_factor():
    rates = {**RATES, ("polite", "local"): 0.5}
    sources = [source._replace(levels={**source.levels, "temperature": "0"}) for source in grid(rates)]
    experiment = built(sources)
    assert [factor.factor for factor in experiment.factors] == ["prompt", "chat"]
    assert experiment.matrix == built(grid(rates)).matrix
    assert "With mini, polite is better than short by" in shown(experiment)


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


def test_answers_from_a_cache_do_not_count_as_free():
    rates = {**RATES, ("short", "mini"): 0.89}
    sources = grid(rates, costs=[0.001, 0.0005, 0.003, 0.004])
    levels = {"prompt": "short", "chat": "mini"}
    cached = variant("short / mini", passing(0.89, 200, usage=[[0.0, 10, math.nan]] * 200), **levels)
    experiment = built([cached, *sources[1:]])
    assert experiment.ranking.runs[0].figures.cost_per_100 is None
    assert "Without a cost are answers from the cache" in shown(experiment)
    # Whatever costs less may be the one whose cost is not known.
    assert experiment.cheapest is None


def test_with_a_margin_the_cheapest_is_shown_to_be_worse_by_less():
    rates = {**RATES, ("short", "mini"): 0.89}
    sources = grid(rates, costs=[0.001, 0.0005, 0.003, 0.004])
    assert built(sources, settings=ComparisonSettings(margin=0.2)).cheapest.margin == 0.2
    assert built(sources, settings=ComparisonSettings(margin=0.02)).cheapest is None


def test_margin_of_the_gate_is_the_one_of_the_cheapest():
    rates = {**RATES, ("short", "mini"): 0.89}
    costs = [0.001, 0.0005, 0.003, 0.004]
    sources = grid(rates, costs=costs)
    for source in sources:
        source.source.margin = 0.2
    experiment = built(sources)
    assert (experiment.margin, experiment.cheapest.margin) == (0.2, 0.2)
    assert "worse by less than 20 points, if at all, than polite / mini: short / mini, $0.10" in shown(experiment)
    assert experiment.ranking == built(grid(rates, costs=costs)).ranking


def test_of_many_variants_a_sentence_names_six_and_counts_the_others():
    experiment = built([variant(f"v{place:02d}", passing(0.5 + place / 800, 800)) for place in range(12)])
    assert experiment.verdict == "No two of the 12 can be told apart with 800 samples."
    (line,) = ["".join(line) for line in experiment.sections()[0].lines]
    assert line.startswith("To tell v11 from v10 takes about ")
    assert " samples, from v09 about " in line
    assert " and from v05 about " in line
    assert line.endswith(", each four times out of five, if the differences are what we saw.")
    best_of_many = built([variant(f"v{place:02d}", passing(0.95 if place > 3 else 0.1, 60)) for place in range(12)])
    assert best_of_many.verdict.startswith("One of v04, v05, v06, v07, v08, v09 and 2 more is best")


def test_clusters_are_the_units_of_ranks_and_factors():
    """Four copies of each sample in one cluster say what one copy says."""
    clusters = [str(place // 4) for place in range(200)]
    sources = []
    for place, cell in enumerate([("short", "mini"), ("short", "local"), ("polite", "mini"), ("polite", "local")]):
        scores = np.repeat(np.arange(50) % 10 < 6 + place, 4).astype(float)
        columns = run({"m": scores.tolist()}, clusters=clusters)
        sources.append(variant(" / ".join(cell), columns, prompt=cell[0], chat=cell[1]))
    clustered = built(sources, settings=ComparisonSettings(cluster="doc"))
    alone = []
    for source in sources:
        marks = source.source.columns(cluster=None).marks.scores[::4, 0, 0]
        alone.append(variant(source.name, run({"m": marks.tolist()}), **source.levels))
    plain_answer = built(alone)
    assert [pair.interval for pair in clustered.ranking.pairs] == [
        pytest.approx(pair.interval) for pair in plain_answer.ranking.pairs
    ]
    for factor, expected in zip(clustered.factors, plain_answer.factors, strict=True):
        assert factor.contrasts[0].interval == pytest.approx(expected.contrasts[0].interval)
    figures = [entry.figures for entry in clustered.ranking.runs]
    assert figures[0].pass_rate_interval == pytest.approx(
        plain_answer.ranking.runs[0].figures.pass_rate_interval, abs=0.01
    )


def test_variant_that_ended_early_is_warned_of_and_what_it_lacks_does_not_pass():
    stopped = passing(1.0, 60)
    stopped.marks.causes[30:] = NOT_RUN
    stopped.marks.passed[30:] = False
    stopped = stopped._replace(run=msgspec.structs.replace(stopped.run, status="interrupted", pass_rate=0.5))
    experiment = built([variant("whole", passing(0.9, 60)), variant("early", stopped)])
    text = shown(experiment)
    assert "Warning: `early` is interrupted." in text
    assert experiment.ranking.runs[1].figures.not_run == 30
    assert experiment.verdict.startswith("So far: whole is best")
    assert "not run" in text


def test_experiment_without_any_score_is_refused():
    class Nothing(Columns):
        def columns(self, *, cluster):
            raise ReportError("`x` has no scores of metrics.")

    with pytest.raises(ReportError, match="No variant of the experiment `x1` has a score"):
        built([VariantSource("a", {}, Nothing(None))])
    experiment = built([VariantSource("a", {}, Nothing(None)), *grid(RATES)])
    assert experiment.missing[0].name == "a"


@functools.cache
def plain():
    """An experiment in which everything that a user named begins with `plain`."""
    usage = [[0.001, 10, 500]] * 60
    sources = []
    for place, rate in enumerate((0.5, 0.9, 0.5, 0.5)):
        levels = {"plain p": f"plain {place // 2}", "plain q": f"plain {place % 2}"}
        score = np.arange(60) < round(rate * 60)
        columns = run({"plain m": score.astype(float).tolist()}, name=f"plain run {place}", usage=usage)
        sources.append(VariantSource(f"plain {place}", levels, Columns(columns)))
    missing = MissingVariant(name="plain gone", levels={}, reason="plain reason")
    return build_experiment(sources, id="plain", name="plain", missing=[missing])


def with_name(value, name):
    """A plain value, in whose texts `plain` is another name."""
    if isinstance(value, str):
        return value.replace("plain", name)
    if isinstance(value, dict):
        return {with_name(key, name): with_name(inner, name) for key, inner in value.items()}
    return [with_name(inner, name) for inner in value] if isinstance(value, (list, tuple)) else value


def renamed(name):
    """The plain experiment with another name for everything."""
    return msgspec.convert(with_name(msgspec.to_builtins(plain()), name), Experiment)


@pytest.mark.parametrize("flavour", ["md", "github", "pr-comment"])
@QUICK
@given(name=NAMES)
def test_hostile_names_make_no_element_in_markdown(flavour, name):
    text = b"".join(renamed(name).forms()[flavour]()).decode()
    if flavour == "pr-comment":
        marker, _, text = text.partition("\n")
        assert re.fullmatch(r"<!-- deemster comment: [A-Za-z0-9._-]* -->", marker)
    page = parsed(MarkdownIt("commonmark").enable("table").render(text))
    assert page.elements <= MARKDOWN | {"details", "summary", "sub"}
    assert page.attributes == set()
    assert page.odd == []


@QUICK
@given(name=NAMES)
def test_hostile_names_make_no_element_in_the_page(name):
    page, plain = (parsed(renamed(text).to_html()) for text in (name, "plain"))
    assert page.elements == plain.elements
    assert {(tag, key) for tag, key, _ in page.attributes} == {(tag, key) for tag, key, _ in plain.attributes}
    assert page.odd == []


@pytest.mark.parametrize("attack", HOSTILE)
def test_attacks_reach_no_terminal_and_no_cell(attack):
    experiment = renamed(attack)
    text = shown(experiment)
    assert "\x1b" not in text
    assert "\n::" not in text
    rows = list(csv.reader(io.StringIO(b"".join(experiment.forms()["csv"]()).decode())))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row)


def test_table_of_variants_is_the_one_of_pandas_and_of_the_csv():
    experiment = built(grid(RATES))
    table = experiment.to_dataframe()
    assert table.variant.tolist() == [variant.name for variant in experiment.variants]
    assert table.best_rank.tolist() == [3, 4, 1, 2]
    rows = list(csv.DictReader(io.StringIO(b"".join(experiment.forms()["csv"]()).decode())))
    assert [float(row["pass_rate"]) for row in rows] == table.pass_rate.tolist()
    assert [row["prompt"] for row in rows] == ["short", "short", "polite", "polite"]


@pytest.mark.parametrize("is_stored", [False, True])
def test_outputs_that_were_cut_refused_or_failed_are_counted(is_stored, tmp_path):
    def answer(given):
        question = given["question"]
        if question.endswith("0"):
            return dm.Output("right", broken_off="length")
        if question.endswith("1"):
            return dm.Output("wrong", broken_off="content_filter")
        if question.endswith("2"):
            raise RuntimeError("no answer")
        return "right"

    samples = [dm.Sample(f"q{place}", {"question": f"q{place}"}, "right") for place in range(30)]
    store = tmp_path / "runs.db"
    where = {"where": store} if is_stored else {}
    report = dm.evaluate(dm.Dataset(samples, name="d"), target=answer, metrics=["exact-match"], **arguments(**where))
    with RunSources(store) as sources:
        source = sources.find(report.run.id if is_stored else report)
        experiment = built([VariantSource("now", {}, source)])
    (entry,) = experiment.ranking.runs
    figures = entry.figures
    assert (figures.cut, figures.refused, figures.failed, figures.unscored) == (3, 3, 3, 0)
    assert entry.run.pass_rate == pytest.approx(0.8)
    head = next(line for line in shown(experiment).splitlines() if line.startswith("variant"))
    assert head.split()[-4:] == ["failed", "cut", "refused", "samples"]


def test_without_text_names_stay_and_reasons_go():
    missing = MissingVariant(name="gone", levels={}, reason="a secret")
    safe = experiment_without_text(built(grid(RATES), missing=[missing]))
    assert "a secret" not in safe.to_json()
    assert "polite / mini is best" in shown(safe)


@pytest.mark.parametrize("width", [80, 120])
def test_screen_of_an_experiment(width, golden):
    experiment = built(grid(SPEC, costs=[0.001, 0.002, 0.0021, 0.004]))
    sections = experiment_overview(experiment, "latest", store_flag="")
    golden(f"screen/experiment-{width}.txt", plain_text(sections, width=width))
