"""The reproductions of the audit of November 2026 that tried what could break, and the test that holds each."""

from __future__ import annotations

import pytest

from tests.reproductions.held_by import ROOT, missing_tests

HELD = {
    "1 a Parquet file of 4 KB takes 5 GB": (
        "test_file_of_4_kilobytes_that_took_5_gigabytes_takes_little",
        "test_small_file_that_would_take_much_memory_is_refused",
        "test_user_may_allow_a_file_to_take_more",
    ),
    "2 a workbook of 20 KB takes 846 MB": (
        "test_small_workbook_that_would_take_much_memory_is_refused",
        "test_user_may_allow_a_workbook_to_take_more",
    ),
    "3 a panel whose member is down says nothing": (
        "test_panel_without_a_member_is_unscored_with_its_votes_and_resume_asks_only_that_member",
        "test_lower_quorum_and_scores_that_lack_a_vote_are_said_in_every_report_until_resume_asks",
        "test_score_of_a_panel_without_a_member_is_withheld_or_said_to_lack_a_vote",
        "test_panel_without_a_member_gives_no_score_and_resume_asks_only_that_member",
        "test_lower_quorum_and_scores_that_lack_a_vote_are_said_in_every_form_of_the_grading",
    ),
    "4 a file named `-` breaks every run": (
        "test_file_named_like_standard_output_breaks_no_run",
        "test_no_command_makes_a_file_named_like_standard_output",
    ),
    "5 the pytest plugin lets CI commands through": ("test_nothing_that_is_printed_is_a_command_of_a_ci_service",),
    "6 a server that reports zero tokens lifts the budget": (
        "test_client_that_reports_no_tokens_does_not_lift_the_budget",
    ),
    "7 a POST without a body hangs, one that breaks off is stored": (
        "test_change_without_a_body_is_answered",
        "test_change_whose_body_breaks_off_is_not_stored",
    ),
    "8 a hostile store hangs every command": ("test_store_with_more_than_a_store_has_is_refused_before_it_is_read",),
    "9 JSON on standard output holds raw C1 and bidi characters": (
        "test_json_on_standard_output_escapes_what_a_terminal_obeys",
    ),
    "10 closed or broken standard output": (
        "test_closed_standard_output_is_said_and_changes_no_exit_code",
        "test_reader_that_stops_reading_changes_no_exit_code",
    ),
    "11 leftovers after kill -9 are never removed": (
        "test_leftover_of_a_killed_process_is_removed_by_the_next",
        "test_what_a_living_process_writes_stays",
    ),
    "12 store import keeps a run and then fails": ("test_import_whose_facts_give_no_report_leaves_nothing_behind",),
    "13 a store with two pages swapped": (
        "test_store_with_two_pages_swapped_gives_what_it_gave_or_says_that_it_is_damaged",
        "test_store_whose_runs_are_lost_is_not_taken_for_an_empty_one",
    ),
    "14 exit 1 without memory": ("test_too_little_memory_is_said_and_is_no_failed_gate",),
    "15 a target that calls os._exit(0) passes": ("test_target_that_ends_the_process_leaves_the_run_incomplete",),
    # Certificates are gone: a report is computed again from a run file whose hash is known.
    "16 altered certificates verify": (
        "test_no_tampered_run_file_holds_where_its_hash_is_known",
        "test_facts_that_no_report_shows_are_covered_by_the_hash",
    ),
    "17 kill -9 is not counted in budgets": ("test_guide_says_what_a_kill_does_to_a_budget",),
    "18 an Inspect archive of 687 KB takes 518 MB": (
        "test_archive_that_unpacks_to_too_much_is_refused",
        "test_member_that_is_longer_than_it_says_is_refused",
    ),
}


@pytest.mark.parametrize("reproduction", HELD)
def test_reproduction_is_held_by_tests_that_exist(reproduction):
    assert missing_tests(HELD[reproduction]) == []


def test_every_defect_of_the_audit_is_here():
    assert [int(name.split(" ")[0]) for name in HELD] == list(range(1, 19))


def test_guide_says_what_a_kill_does_to_a_budget():
    guide = (ROOT / "docs" / "guide" / "models.md").read_text(encoding="utf-8")
    assert "Only what a kill interrupts is not counted: requests in progress" in " ".join(guide.split())
