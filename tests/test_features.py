"""Who may know whom: a feature lives in its files and is known to at most four others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.builders.source_trees import ONE_WORKER, SOURCE, syntax_tree

pytestmark = ONE_WORKER
MOST = 4


class Feature(NamedTuple):
    """A feature.

    Attributes:
        files: The files that it lives in, its command among them.
        known_to: The other files that may import one of them.
        because: Why more than four may.
    """

    files: tuple[str, ...]
    known_to: tuple[str, ...]
    because: str | None = None


FEATURES = {
    "confirmation": Feature(
        ("gate/confirmation", "evaluation/confirm_run", "stats/confirm_failures"),
        ("cli/_run_and_report", "cli/compare", "evaluation/evaluate_dataset", "gate/baseline_gate"),
    ),
    "attacks": Feature(
        (
            "attack/*",
            "cli/attack",
            "datasets/attack_*",
            "results/attack_success",
            "metrics/attack_resisted",
            "report/attack_sections",
        ),
        (
            "cli/check",
            "evaluation/preflight_check",
            "evaluation/suite",
            "gate/gate_decision",
            "monitoring/promote_failures",
            "report/broken_rules",
            "report/report_document",
            "report/report_sections",
            "report/report_settings",
            "results/run_summary",
        ),
        because="A suite says how; they are priced and noticed before the run, counted after it, shown and ruled by.",
    ),
    "recording": Feature(("monitoring/recorder", "monitoring/recording_writer"), ()),
    "monitoring": Feature(("monitoring/*", "cli/monitor"), ("cli/attack", "cli/_golden_samples", "cli/export")),
    "cluster": Feature(("remote/*",), ("evaluation/run_evaluation",)),
    "calibration": Feature(
        (
            "calibration/calibrate_run",
            "calibration/_judged_outputs",
            "agreement/calibrat*",
            "datasets/calibration_cases",
            "report/corrected_rates",
            "cli/agreement",
        ),
        ("evaluation/check_file", "evaluation/judge_anchors", "evaluation/suite_parts", "report/build_report"),
    ),
    "labels of a run": Feature(
        ("runs/run_labels", "calibration/*", "cli/labels", "view/label_*"),
        ("cli/agreement", "cli/_agreement_inputs", "comparison/compare_labels", "view/*"),
    ),
    "brief": Feature(("comparison/failure_brief",), ("cli/show", "cli/report_options")),
    "run file": Feature(
        (
            "store/run_file*",
            "store/run_export",
            "store/run_import",
            "evaluation/take_in_runs",
            "evaluation/verify_report",
            "cli/store",
            "cli/import_command",
        ),
        ("store/open_runs", "evaluation/check_file", "cli/_run_list", "cli/export"),
    ),
    "planning": Feature(("planning/*", "cli/plan"), ()),
    "audits": Feature(("audit/*", "cli/audit"), ()),
    "cascade": Feature(
        ("judges/judge_cascade",),
        ("judges/_item_aggregation", "judges/criterion_grader", "judges/grader_section"),
    ),
    "anchors": Feature(
        ("evaluation/judge_anchors",),
        ("calibration/calibrate_run", "evaluation/check_file", "evaluation/dry_run", "evaluation/run_evaluation"),
    ),
    "scoring once more": Feature(("evaluation/rescore_run", "cli/_stored_outputs"), ("cli/run",)),
    "rubric improvement": Feature(("grading/*improve*", "grading/*improvement*", "cli/rubric"), ()),
    "ranking": Feature(
        ("comparison/ranking*",),
        ("comparison/compare_runs", "comparison/without_text", "comparison/experiment*", "cli/compare"),
    ),
    "variants": Feature(
        (
            "evaluation/variants",
            "evaluation/run_experiment",
            "evaluation/evaluate_variants",
            "cli/_run_variants",
            "comparison/experiment*",
            "view/experiment_pages",
        ),
        ("cli/run", "cli/check", "evaluation/check_file", "cli/show", "comparison/without_text", "view/*"),
        because="They are checked before, run, and shown after, with and without texts.",
    ),
    "comment of a pull request": Feature(
        ("report/pull_request_comment", "comparison/comparison_comment"),
        ("cli/report_options", "comparison/comparison", "comparison/experiment_report", "report/report_document"),
    ),
    "change of judge": Feature(
        ("comparison/judge_change*", "comparison/judged_outputs", "stats/score_link"),
        (
            "comparison/_comparison_page",
            "comparison/comparison",
            "comparison/comparison_sections",
            "comparison/comparison_verdict",
            "comparison/compare_labels",
            "comparison/compare_runs",
            "comparison/report_loader",
            "comparison/without_text",
        ),
        because="It is a part of a comparison: found, labelled, laid out, read back, with and without texts.",
    ),
    "few-shot examples": Feature(
        ("judges/few_shot",), ("judges/_grading_prompt", "judges/criterion_grader", "judges/grader_section")
    ),
    "chat target": Feature(
        ("targets/chat_target", "targets/chat_prompt", "targets/_jinja_prompt"),
        (
            "targets/target_section",
            "evaluation/preflight_check",
            "integrations/promptfoo/*",
            "report/kept_details",
            "report/sample_report",
        ),
        because="Prompts are checked before a run, shown filled in after it, and come from promptfoo, too.",
    ),
    "viewer": Feature(("view/*", "cli/view"), ()),
    "Parquet": Feature(
        (
            "store/parquet_export",
            "formats/read_parquet",
            "datasets/_sample_table",
            "targets/_saved_outputs_table",
            "targets/_saved_outputs_parquet",
            "datasets/listed_rows",
        ),
        ("cli/export", "datasets/golden_dataset", "evaluation/check_file", "targets/saved_outputs"),
    ),
    "pytest plug-in": Feature(("integrations/pytest_*",), ()),
}


# The files that may speak of variants. A variant is resolved into an ordinary evaluation before anything runs.
SPEAK_OF_VARIANTS = (
    *FEATURES["variants"].files,
    *("evaluation/suite", "cli/run", "cli/check", "cli/show", "cli/help", "comparison/without_text", "gate/read_gate"),
    "integrations/import_promptfoo_config",
)
# The word means something else here: other versions of an output, and a property of a font.
OTHER_VARIANTS = ("audit/audit_judge", "audit/judge_bias", "judges/bias_probes", "text/_page_style")


@cache
def imports() -> dict[str, frozenset[str]]:
    """The files that each file imports, without their ending."""
    files = {str(path.relative_to(SOURCE).with_suffix("")) for path in SOURCE.rglob("*.py")}
    return {file: frozenset(imported_files(file, files)) for file in files}


def imported_files(file: str, files: set[str]) -> Iterator[str]:
    for node in ast.walk(syntax_tree(f"{file}.py")):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("deemster."):
            module = node.module.removeprefix("deemster.").replace(".", "/")
            yield module
            yield from (path for alias in node.names if (path := f"{module}/{alias.name}") in files)


def fits(file: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(file, pattern) for pattern in patterns)


@pytest.mark.parametrize("name", FEATURES)
def test_feature_is_known_to_few(name):
    feature = FEATURES[name]
    files = {file for file in imports() if fits(file, feature.files)}
    assert files, f"The files of {name} are gone: take it out of the table."
    for file, imported in imports().items():
        assert file in files or not imported & files or fits(file, feature.known_to), (
            f"{file}.py should not know the feature {name}. Let it ask a file that does, or, where it has to, "
            f"add it to the table in {Path(__file__).name} and take another one out: {', '.join(feature.known_to)}."
        )


@pytest.mark.parametrize("name", [name for name, feature in FEATURES.items() if feature.because is None])
def test_feature_has_at_most_four_doors(name):
    doors = [pattern for pattern in FEATURES[name].known_to if not pattern.startswith("view/")]
    assert len(doors) <= MOST, f"{name} is known to {len(doors)} files outside its own, and may be to {MOST}."


def test_variants_are_spoken_of_by_few():
    word = re.compile(r"\bvariants?\b", re.IGNORECASE)
    speaking = {file for file in imports() if word.search((SOURCE / f"{file}.py").read_text(encoding="utf-8"))}
    others = sorted(file for file in speaking if not fits(file, (*SPEAK_OF_VARIANTS, *OTHER_VARIANTS)))
    assert not others, f"These should know runs and targets, and no variants: {', '.join(others)}."
    assert "evaluation/variants" in speaking
