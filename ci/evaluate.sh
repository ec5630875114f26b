#!/usr/bin/env bash
# Runs a suite and writes its reports; later steps of the job comment, keep the reports, and decide by the exit code.
# Reads SUITE, ARGS (one flag a line), WITHOUT_TEXT and STORE; writes its results to GITHUB_OUTPUT.
set -uo pipefail

reports=$(mktemp -d "${RUNNER_TEMP:-/tmp}/deemster.XXXXXX")
flags=(--to "$reports/report.json" --to "$reports/report.html" --to "$reports/report.xml")
flags+=(--to "$reports/pr-comment.md")
if [ "${WITHOUT_TEXT:-false}" = true ]; then flags+=(--without-text); fi
while IFS= read -r flag; do
  if [ -n "$flag" ]; then flags+=("$flag"); fi
done <<< "${ARGS:-}"
if [ -n "${STORE:-}" ]; then export DEEMSTER_STORE=$STORE; fi

# The summary of the job is written to GITHUB_STEP_SUMMARY.
deemster run "$SUITE" "${flags[@]}"
code=$?
{
  echo "exit-code=$code"
  echo "reports=$reports"
  if [ -s "$reports/pr-comment.md" ]; then echo "comment=$reports/pr-comment.md"; fi
} >> "$GITHUB_OUTPUT"
