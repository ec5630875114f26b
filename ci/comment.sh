#!/usr/bin/env bash
# Posts a comment under a pull request, or updates the one whose first line is the same hidden marker.
# Reads GITHUB_REPOSITORY, PULL_REQUEST and GH_TOKEN; the argument is the file that `--to pr-comment.md` wrote.
set -euo pipefail

MARKER=$(head -n 1 "$1")
export MARKER
comments="repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments"

# Only comments of a bot: a person may have quoted the marker.
find='.[] | select(.user.type == "Bot" and (.body | startswith(env.MARKER))) | .id'
warn() {
  echo "::warning::The comment could not be written: the token may not write to pull requests, such as that of a fork."
}
if ! found=$(gh api --paginate "$comments" --jq "$find"); then
  warn
  exit 0
fi
if [ -n "$found" ]; then
  gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/${found%%$'\n'*}" --field "body=@$1" || warn
else
  gh api --silent --method POST "$comments" --field "body=@$1" || warn
fi
