from __future__ import annotations

import html.parser

from deemster.agreement import BootstrapSettings, compute_metrics
from deemster.datasets import Votes
from tests.agreement import make_results as results


def votes(name):
    items = [
        {"id": f"q{at}", "ground_truth": ["MET" if at % 2 else "UNMET"], "votes": {"a": ["MET" if at % 3 else "UNMET"]}}
        for at in range(6)
    ]
    rubric = [{"name": name, "requirement": "It is right."}]
    return Votes.parse(
        {"schema_version": "deemster.votes.v1", "rubric": rubric, "judges": [{"id": "a"}], "items": items}
    )


class _Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)


def test_notebook_shows_answer_reasons_and_warnings_first():
    page = compute_metrics(votes("facts"), bootstrap=BootstrapSettings(seed=1))._repr_html_()
    assert page.index("Can this judge be trusted?") < page.index("Why: ") < page.index("mean kappa")


def test_criteria_are_shown_with_their_kappa():
    page = compute_metrics(votes("facts"), bootstrap=BootstrapSettings(seed=1))._repr_html_()
    assert "<code>facts</code>" in page
    assert '<th scope="col" class="number">kappa</th>' in page


def test_results_with_every_kind_of_criterion_can_be_shown():
    for result in (results.full_result(), results.empty_result()):
        assert "Can this judge be trusted?" in result._repr_html_()


def test_name_from_data_makes_no_element():
    hostile, plain = _Tags(), _Tags()
    page = compute_metrics(votes("<img src=x onerror=alert(1)>$x$"), bootstrap=BootstrapSettings(seed=1))._repr_html_()
    hostile.feed(page)
    plain.feed(compute_metrics(votes("facts"), bootstrap=BootstrapSettings(seed=1))._repr_html_())
    assert "img" not in hostile.tags
    assert hostile.tags == plain.tags
    assert "$x$" not in page
