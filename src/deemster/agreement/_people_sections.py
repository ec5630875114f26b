"""How people agree with each other, what they are tied on, and whether a judge may replace one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from deemster.agreement._agreement_tables import format_signed
from deemster.agreement.agreement_sentences import measure_of_people
from deemster.agreement.result_models import HumanAgreement, ReferenceAgreement
from deemster.errors import plural
from deemster.stats.alternative_annotator_test import AlternativeAnnotator
from deemster.text.number_format import format_number, format_percent
from deemster.text.text_sections import DataText, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.agreement.metrics_result import MetricsResult

_MOST_TIED_SHOWN = 10


def people_section(human: HumanAgreement, result: MetricsResult) -> TextSection:
    """How people, the judges and their final verdicts agree with the other people."""
    measured = [
        *(("person", part) for part in human.annotators),
        *_final_verdicts(human, n_judges=result.n_judges),
        *(("judge", part) for part in human.judges),
    ]
    rows = [
        (
            kind,
            DataText(part.name) if kind != "final" else "verdicts",
            f"{part.n_samples:,}",
            format_percent(part.accuracy),
            format_number(part.mean_kappa),
        )
        for kind, part in measured
    ]
    table = TextTable(("who", "name", "n", "accuracy", "mean kappa"), rows)

    lines = [*((sentence,) for sentence in _sentences(human, result)), *_tied_cells(human)]
    return TextSection(("Judges and people against the other people",), lines, table, key="people")


def _final_verdicts(human: HumanAgreement, *, n_judges: int) -> list[tuple[str, ReferenceAgreement]]:
    """The final verdicts, where they are others than those of a single judge."""
    if n_judges > 1:
        return [("panel", human.panel)]
    # A panel of one is that judge, unless verdicts were recorded or checked otherwise.
    return [("final", human.panel)] if _differs(human) else []


def _sentences(human: HumanAgreement, result: MetricsResult) -> Iterator[str]:
    subject = "panel" if result.n_judges > 1 else "judge"
    people = f"{plural(human.n_annotators, 'annotator')}, {plural(human.n_items, 'item')} with two or more"
    yield f"{people}; alpha among them {format_number(human.krippendorff_alpha)}."

    if human.pairwise_kappa is not None:
        yield f"Two people's labels of one cell agree with a kappa of {format_number(human.pairwise_kappa)}."
        yield f"A person's label and the {subject}'s verdict agree with {format_number(human.panel_pairwise_kappa)}."

    _, measure = measure_of_people(result)
    ceiling = f"a {measure} of {format_number(human.ceiling_kappa)}"
    if human.ceiling_accuracy is not None:
        ceiling += f" and an accuracy of {format_percent(human.ceiling_accuracy)}"
    gap = f"{format_signed(human.kappa_gap)} in {measure.split()[0]}"
    yield f"The ceiling is {ceiling}; the {subject}'s gap is {gap}."


def _tied_cells(human: HumanAgreement) -> Iterator[TextLine]:
    """The first cells on which people are evenly split, for somebody to decide."""
    if not human.disputed:
        return
    yield (f"People are tied on {plural(len(human.disputed), 'cell')}; someone must decide:",)
    for cell in human.disputed[:_MOST_TIED_SHOWN]:
        yield DataText(cell.item), ", ", DataText(cell.criterion)
    if len(human.disputed) > _MOST_TIED_SHOWN:
        yield (f"and {len(human.disputed) - _MOST_TIED_SHOWN:,} more, in the JSON file.",)


def _differs(human: HumanAgreement) -> bool:
    """Whether the final verdicts are others than those of a single judge."""
    final = human.panel
    return any(
        (part.accuracy, part.mean_kappa, part.n_samples) != (final.accuracy, final.mean_kappa, final.n_samples)
        for part in human.judges
    )


def annotator_test_section(tests: Mapping[str, AlternativeAnnotator]) -> TextSection:
    """Whether the judge may replace a person, criterion by criterion."""
    first = next(iter(tests.values()))
    rows = [
        (
            DataText(name),
            {True: "yes", False: "no", None: "too few items"}[test.passes],
            format_number(test.value, places=2),
            format_number(test.advantage),
            f"{test.n:,} of {len(test.trials):,}",
            _items_tested(test),
        )
        for name, test in tests.items()
    ]
    lines: list[TextLine] = [
        ("The alternative annotator test leaves out one person at a time and asks who is nearer to the others.",),
        (f"The judge may be worse by {format_number(first.epsilon, places=2)}, as it is cheaper (epsilon).",),
        ("It passes where it wins against at least half of the people.",),
        (f"Of its wins, at most {format_percent(first.q)} are expected to be false.",),
    ]
    head = ("criterion", "passes", "winning rate", "judge at least as near", "people tested", "items")
    return TextSection(
        ("May the judge replace a person?",), lines, TextTable(head, rows, ("items",)), key="annotator-tests"
    )


def _items_tested(test: AlternativeAnnotator) -> str:
    counts = sorted(trial.n for trial in test.trials.values())
    return f"{counts[0]:,}" if counts[0] == counts[-1] else f"{counts[0]:,} to {counts[-1]:,}"
