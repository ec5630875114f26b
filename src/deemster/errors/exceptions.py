"""The exception tree, the issues it carries, and the exit codes."""

from __future__ import annotations

import enum
import errno
import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from deemster.errors.message_text import visible

MOST_SHOWN = 20
# So many lines with the same issue are one line, which names so many of them.
_ALIKE = 3
_NAMED = 5
_LONGEST = 4000
_STORAGE_FAILURES = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})


class ExitCode(enum.IntEnum):
    """How a command ends."""

    PASSED = 0
    GATE_FAILED = 1
    BAD_INPUT = 2
    INCOMPLETE = 3
    INCONCLUSIVE = 4


class Issue(NamedTuple):
    """One thing that is wrong with an input, and where.

    Attributes:
        message: What is wrong and what was expected, as one sentence.
        where: ``file:line``, ``file`` or a JSON pointer.
        sample: The id of the sample concerned.
        warning: Whether the input can be used all the same. A metric's ``check`` says so of a sample that it will leave
            unscored; any other issue stops the run before it starts.
    """

    message: str
    where: str | None = None
    sample: str | None = None
    warning: bool = False

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        sample = f"sample `{self.sample}`: " if self.sample is not None else ""
        return visible(f"{place}{sample}{self.message}", limit=_LONGEST)


class DeemsterError(Exception):
    """Anything this package raises on purpose."""

    exit_code = ExitCode.BAD_INPUT


class InputError(DeemsterError, ValueError):
    """What the user gave cannot be used.

    Attributes:
        issues: Everything that was found wrong, in the order it was found.
    """

    def __init__(self, issues: str | Issue | Iterable[Issue]) -> None:
        if isinstance(issues, str):
            issues = Issue(issues)
        self.issues: tuple[Issue, ...] = (issues,) if isinstance(issues, Issue) else tuple(issues)
        super().__init__(self.issues)

    def __str__(self) -> str:
        lines = _describe_issues(self.issues)
        if len(lines) > MOST_SHOWN:
            lines = [*lines[:MOST_SHOWN], f"... and {len(lines) - MOST_SHOWN} more"]
        return "\n".join(lines)


def _describe_issues(issues: Iterable[Issue]) -> list[str]:
    """A line for each issue; one for all lines of a file that have the same one."""
    alike: dict[tuple[str, str], list[Issue]] = {}
    for issue in issues:
        file, _, line = (issue.where or "").rpartition(":")
        key = file if line.isdecimal() else f"{issue.where}\0{issue.sample}"
        alike.setdefault((issue.message, key), []).append(issue)
    return [
        line
        for group in alike.values()
        for line in ([_describe_alike(group)] if len(group) >= _ALIKE else map(str, group))
    ]


def _describe_alike(issues: Sequence[Issue]) -> str:
    """One issue of many lines, with the numbers of the first ones."""
    first = issues[0]
    lines = [(issue.where or "").rpartition(":")[2] for issue in issues]
    named = ", ".join(lines[:_NAMED]) + (", ..." if len(lines) > _NAMED else "")
    return str(Issue(f"{len(issues)} lines ({named}): {first.message}", (first.where or "").rpartition(":")[0]))


class DatasetError(InputError):
    """A golden dataset or a rubric dataset cannot be used."""


class RubricError(InputError):
    """A rubric, or a verdict on one of its criteria, cannot be used."""


class VotesError(InputError):
    """Votes of judges cannot be used, or do not fit the dataset."""


class OutputsError(InputError):
    """Saved outputs cannot be used, or do not fit the dataset."""


class ReportError(InputError):
    """A report file cannot be read, or a report cannot be written."""


class ReportWriteError(ReportError):
    """A report cannot be written although its place is right: the disk is full, or the device fails."""

    exit_code = ExitCode.INCOMPLETE


class StoreError(InputError):
    """A store of runs cannot be opened, read or written, or holds no such run."""


class LeaseError(StoreError):
    """A run of a store belongs to another process."""


class RunExistsError(StoreError):
    """A store has a run of that id already."""


class StorageError(StoreError):
    """Storage failed: the disk is full, a store is damaged, or its database refuses. The input is not to blame."""

    exit_code = ExitCode.INCOMPLETE


class ConfigurationError(InputError):
    """A suite, metric, option or gate rule cannot be used."""


class MissingExtraError(DeemsterError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, need: str, *, extra: str) -> None:
        super().__init__(f"{need} needs the `{extra}` extra: pip install 'deemster[{extra}]'")
        self._given = need, extra

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker of a cluster may lack an extra, and its errors are pickled.
        need, extra = self._given
        return functools.partial(type(self), extra=extra), (need,)


class RunCancelledError(DeemsterError):
    """User code cancelled the tasks of a run from within, so that it could not go on."""

    exit_code = ExitCode.INCOMPLETE


def is_out_of_descriptors(error: BaseException | None) -> bool:
    """Whether something could not be opened because this process, or this machine, has no file descriptor left."""
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


def is_storage_failure(error: OSError) -> bool:
    """Whether a file could not be written because of the disk, and not because of the path that the user gave."""
    return error.errno in _STORAGE_FAILURES
