"""The methods paragraph of a paper: what a report computed, by which rule, with references; nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final

from deemster.errors import plural
from deemster.results.metric_summary import RunMetricSummary
from deemster.text.markdown_layout import render_markdown
from deemster.text.text_sections import DataText, MetricName, TextLine, TextSection, join_names, join_parts

if TYPE_CHECKING:
    from deemster.report.report_document import Report

_REFERENCES: Final = {
    "Angelopoulos 2023": "A. N. Angelopoulos, J. C. Duchi, T. Zrnic: PPI++: efficient prediction-powered inference."
    " arXiv:2311.01453 (2023).",
    "Chen 2008": "J. Chen, A. M. Variyath, B. Abraham: Adjusted empirical likelihood and its properties. Journal of"
    " Computational and Graphical Statistics 17 (2008).",
    "Holm 1979": "S. Holm: A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics"
    " 6 (1979).",
    "Järvelin 2002": "K. Järvelin, J. Kekäläinen: Cumulated gain-based evaluation of IR techniques. ACM Transactions on"
    " Information Systems 20 (2002).",
    "Kish 1965": "L. Kish: Survey Sampling. Wiley (1965).",
    "Lang 2014": "Z. Lang, J. Reiczigel: Confidence limits for prevalence of disease adjusted for estimated"
    " sensitivity and specificity. Preventive Veterinary Medicine 113 (2014).",
    "Lin 2004": "C.-Y. Lin: ROUGE: a package for automatic evaluation of summaries. Text Summarization Branches Out"
    " (2004).",
    "Liu 2023": "Y. Liu et al.: G-Eval: NLG evaluation using GPT-4 with better human alignment. arXiv:2303.16634"
    " (2023).",
    "Owen 1988": "A. B. Owen: Empirical likelihood ratio confidence intervals for a single functional. Biometrika 75"
    " (1988).",
    "Popović 2015": "M. Popović: chrF: character n-gram F-score for automatic MT evaluation. WMT (2015).",
    "Post 2018": "M. Post: A call for clarity in reporting BLEU scores. WMT (2018).",
    "Rajpurkar 2016": "P. Rajpurkar et al.: SQuAD: 100,000+ questions for machine comprehension of text. EMNLP (2016).",
    "Rogan 1978": "W. J. Rogan, B. Gladen: Estimating prevalence from the results of a screening test. American Journal"
    " of Epidemiology 107 (1978).",
    "Wilson 1927": "E. B. Wilson: Probable inference, the law of succession, and statistical inference. Journal of the"
    " American Statistical Association 22 (1927).",
    "Zhang 2020": "T. Zhang et al.: BERTScore: evaluating text generation with BERT. ICLR (2020).",
    "Zheng 2023": "L. Zheng et al.: Judging LLM-as-a-judge with MT-bench and chatbot arena. arXiv:2306.05685 (2023).",
}
# What a metric is after, by the name that its spec begins with.
_METRIC_REFERENCES: Final = {
    "bertscore-like": ("Zhang 2020",),
    "bleu": ("Post 2018",),
    "chrf": ("Popović 2015", "Post 2018"),
    "g-eval": ("Liu 2023",),
    "llm-as-judge": ("Zheng 2023",),
    "retrieval-ndcg-at-k": ("Järvelin 2002",),
    "rouge-l": ("Lin 2004",),
    "token-f1": ("Rajpurkar 2016",),
}
_MARGIN_RULE: Final = "baseline.margin."


def methods_paragraph(report: Report) -> str:
    """The methods of a report as Markdown: a paragraph, and the references that it names.

    Args:
        report: The report.
    """
    sentences = [
        *_what_was_run(report),
        *_metric_sentences(report),
        *_judge_sentences(report),
        *_left_out(report),
        *_interval_sentences(report),
        *_correction_sentences(report),
        *_gate_sentences(report),
    ]
    # A space after each sentence but the last.
    paragraph = tuple(chain.from_iterable((*sentence, " ") for sentence in sentences))[:-1]
    text = "".join(paragraph)
    references: list[TextLine] = [("- ", reference) for key, reference in _REFERENCES.items() if key in text]
    return render_markdown(
        [
            TextSection(("Methods",), [paragraph], key="methods"),
            TextSection(("References",), references, key="references"),
        ]
    )


def _what_was_run(report: Report) -> Iterator[TextLine]:
    totals = report.totals
    target: TextLine = ("outputs",) if report.run.target is None else ("outputs of ", DataText(report.run.target))
    times = "" if totals.repetitions == 1 else f", {totals.repetitions} times each"
    fingerprint = "" if report.dataset.fingerprint is None else f" (fingerprint {report.dataset.fingerprint[:12]})"
    yield (
        "We evaluated ",
        *target,
        f" on {plural(totals.samples, 'sample')} of the dataset ",
        DataText(report.dataset.name),
        f"{fingerprint}{times}, with deemster {report.tool_version} (run {report.run.id}, seed {report.run.seed}).",
    )

    part = report.run.part
    if part is not None:
        selection: TextLine = () if part.selection is None else (", selected by ", DataText(part.selection))
        yield f"They are a part of {plural(part.of, 'sample')}", *selection, "."
    if report.run.status != "complete":
        reason: TextLine = () if report.run.reason is None else (": ", DataText(report.run.reason))
        yield f"The run is {report.run.status}", *reason, "."


def _metric_sentences(report: Report) -> Iterator[TextLine]:
    """Which metrics scored the outputs, what passes, and what the two rates over all of them are."""
    metrics = [(MetricName(name), *_describe_metric(name, report.metrics[name])) for name in report.metric_order]
    yield "Each output was scored by ", *join_parts(metrics), "."

    if report.macro_f1 is not None and len(report.metric_order) > 1:
        yield ("The mean pass-rate is the mean of the metrics' pass-rates.",)
        yield ("The pass-rate is the share of outputs that pass every metric that applies.",)
    if report.adversarial is not None:
        attacks = plural(report.adversarial.overall.samples, "attack")
        yield (
            f"Of {attacks}, the success rate is the share that did not pass ",
            *join_names(report.adversarial.metrics),
            ".",
        )
    if report.aggregate is not None:
        yield "Scores were combined by the aggregator ", DataText(report.aggregate.aggregator), "."


def _describe_metric(name: str, figures: RunMetricSummary) -> Iterator[str]:
    """In brackets: how a metric is set, what passes, and what it is after."""
    facts: list[str] = [] if figures.spec == name else [DataText(figures.spec)]
    if figures.threshold is not None:
        side = "from" if figures.higher_is_better else "up to"
        facts.append(f"a pass {side} {figures.threshold:g}")
    facts += _METRIC_REFERENCES.get(figures.spec.partition("(")[0], ())
    if facts:
        first, *others = facts
        yield from (" (", first, *chain.from_iterable(("; ", fact) for fact in others), ")")


def _judge_sentences(report: Report) -> Iterator[TextLine]:
    """Which models judged, by which criteria."""
    models = report.run.models or {}
    for name in report.metric_order:
        figures = report.metrics[name]
        asked = [str(models[role]["model"]) for role in figures.roles if (models.get(role) or {}).get("model")]
        if asked:
            several = " of a panel of " if len(asked) > 1 else " of "
            yield "The scores of ", MetricName(name), f" are judgements{several}", *join_names(asked), "."
        if figures.criteria:
            yield "The rubric of ", MetricName(name), " has the criteria ", *join_names(figures.criteria), "."
    for name, panel in (report.panels or {}).items():
        if panel.n_incomplete:
            yield f"{panel.n_incomplete:,} of {panel.n:,} scores of ", MetricName(name), " lack the vote of a judge."


def _left_out(report: Report) -> Iterator[TextLine]:
    totals = report.totals
    if totals.unscored:
        missing = f"{totals.unscored:,} of {totals.marks:,} scores could not be had"
        yield (f"{missing}; they count as not passed, and are in no mean score.",)
    if totals.not_applicable:
        yield (f"{plural(totals.not_applicable, 'score')} were not made, since the metric does not apply there.",)


def _interval_sentences(report: Report) -> Iterator[TextLine]:
    """By which rule intervals were made, with what counts as one unit."""
    if report.macro_f1_interval is not None or report.pass_rate_interval is not None:
        has_units = report.dataset.cluster is not None or report.totals.repetitions > 1
        size = ", for as many independent outputs as the units below are worth" if has_units else ""
        cited = "Wilson 1927" if report.dataset.cluster is None else "Wilson 1927; Kish 1965"
        yield (f"Pass-rates have 95 % score intervals{size} ({cited}).",)
    if any(metric.mean_interval is not None for metric in report.metrics.values()):
        rule = "by Student's t where 20 units or more differ from the most common score"
        otherwise = "by empirical likelihood with an imagined unit at the end of the range (Owen 1988; Chen 2008)"
        yield (f"Mean scores have 95 % intervals {rule}, and else {otherwise}.",)
    if report.dataset.cluster is not None:
        yield "The units are the clusters of samples with the same ", DataText(report.dataset.cluster), "."
    elif report.totals.repetitions > 1:
        yield ("The units are samples: repetitions of a sample are one.",)


def _correction_sentences(report: Report) -> Iterator[TextLine]:
    """What was corrected by labels of people, and how."""
    for name in report.metric_order:
        found = report.metrics[name].pass_rate_corrected
        if found is None or found.value is None:
            continue
        labels = f"was also corrected for the judge's errors on {plural(found.labels, 'label')} of people"
        rule = "by its sensitivity and specificity (Rogan 1978), with an interval that carries both errors (Lang 2014)"
        yield "The pass-rate of ", MetricName(name), f" {labels}, {rule}."
        if found.mean is not None:
            yield ("Its mean score was corrected by the prediction-powered mean (Angelopoulos 2023).",)


def _gate_sentences(report: Report) -> Iterator[TextLine]:
    """The rules of a gate that were checked, and what margins mean."""
    checks = [] if report.gate is None else [check for check in report.gate.checks if check.status != "skipped"]
    if report.gate is None or not checks:
        return
    listed = [f"{check.name} {check.required:g}" for check in checks]
    yield f"The run was held to {plural(len(checks), 'rule')}: ", *join_names(listed), "."

    margins = [check for check in checks if check.name.startswith(_MARGIN_RULE)]
    if margins:
        holm = " after Holm's correction over the margins (Holm 1979)" if len(margins) > 1 else ""
        holds = "a margin holds where the one-sided lower bound of the difference lies above it"
        broken = f"is broken where the one-sided test of a smaller drop is rejected{holm}"
        yield (f"Against the baseline, paired by sample, {holds}, and {broken}.",)
