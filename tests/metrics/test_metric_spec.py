from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import ConfigurationError
from deemster.metrics.answer_containment import AnswerContainmentAtK
from deemster.metrics.bleu_and_chrf import Bleu, Chrf
from deemster.metrics.metric_spec import Spec, parse_spec
from deemster.metrics.regex_match import Regex
from deemster.metrics.retrieval_metrics import RetrievalMrr, RetrievalNdcgAtK, RetrievalPrecisionAtK
from deemster.metrics.rouge_and_token_f1 import RougeL, TokenF1
from deemster.metrics.text_match import ContainsAll, ExactMatch, LengthWithin, Levenshtein

EXAMPLES = [
    (ExactMatch(), "exact-match"),
    (ExactMatch(normalize=["strip", "casefold"]), 'exact-match(normalize=["casefold","strip"])'),
    (ContainsAll(credit="fraction", threshold=1), "contains-all(credit=fraction,threshold=1.0)"),
    (LengthWithin(max=3, unit="words"), "length-within(max=3,unit=words)"),
    (Levenshtein(max_cells=5), "levenshtein(max_cells=5)"),
    (RougeL(name="rouge-strict", threshold=0.7), "rouge-l(name=rouge-strict,threshold=0.7)"),
    (TokenF1(articles="keep"), "token-f1(articles=keep)"),
    (Regex(pattern='/"(x), y@3=/i', full=True), 'regex(full=true,pattern="/\\"(x), y@3=/i")'),
    (Regex(pattern="null"), 'regex(pattern="null")'),
    (Bleu(tokenize="13a", smooth="add-k"), "bleu(smooth=add-k)"),
    (Chrf(word_order=2), "chrf(word_order=2)"),
    (RetrievalMrr(), "mrr"),
    (RetrievalMrr(k=10), "mrr@10"),
    (RetrievalNdcgAtK(k=10, gain="exponential"), "ndcg(gain=exponential)@10"),
    (RetrievalPrecisionAtK(denominator="retrieved", name="p"), "precision(denominator=retrieved,name=p)"),
    (AnswerContainmentAtK(case_sensitive=True, k=1), "containment(case_sensitive=true)@1"),
]


@pytest.mark.parametrize(("metric", "spec"), EXAMPLES)
def test_metric_equals_its_parsed_spec(metric, spec):
    assert str(metric) == spec
    name, options = parse_spec(spec)
    assert name in {metric.alias, metric.short}
    assert type(metric)(**options) == metric


def test_name_is_the_alias_or_the_short_name_with_k():
    assert RetrievalNdcgAtK().name == "retrieval-ndcg-at-k"
    assert RetrievalNdcgAtK(k=10).name == "ndcg@10"
    assert RetrievalNdcgAtK(k=10, name="mine").name == "mine"


def test_spaces_between_options_are_allowed():
    assert parse_spec("ndcg(gain = exponential, name= x)@10") == Spec(
        "ndcg", {"gain": "exponential", "name": "x", "k": 10}
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(x)",
        "ndcg(",
        "ndcg()",
        "ndcg(gain)",
        "ndcg(gain=linear",
        "ndcg(gain=linear)x",
        "ndcg(gain=linear,gain=linear)",
        "ndcg(k=3)@3",
        "ndcg(threshold=NaN)",
        "ndcg@",
        "ndcg@0",
        "ndcg@-1",
        "ndcg@1.5",
        "ndcg@ten",
        "ndcg@٣",
        "ndcg @3",
    ],
)
def test_text_that_is_no_spec_is_a_configuration_error(text):
    with pytest.raises(ConfigurationError, match="is no metric spec"):
        parse_spec(text)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_any_name_round_trips_through_spec(name):
    metric = RougeL(name=name)
    assert RougeL(**parse_spec(str(metric)).options) == metric
