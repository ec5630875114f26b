"""Certificates: one file with the facts and the report of a run, from which anyone computes the report again."""

from __future__ import annotations

import hashlib
import platform
import tempfile
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

import msgspec

from deemster import __version__
from deemster.datasets.fingerprint import list_hash
from deemster.errors import DeemsterError, ExitCode, Issue, ReportError, StoreError, visible
from deemster.formats import missing_file
from deemster.formats.atomic_write import write_aside
from deemster.report import Report, redact_report
from deemster.runs.build_report import quoted_details, stored_report
from deemster.store import RunRow, Store, open_store
from deemster.store.run_export import export_runs
from deemster.store.run_file_format import Hex, parse_header
from deemster.store.run_import import import_runs

SCHEMA: Literal["deemster.certificate.v1"] = "deemster.certificate.v1"
FACTS, REPORT = "run.jsonl", "report.json"
# The longest first and last line that is read, and how much of a part at once.
_LONGEST = 1 << 20
_PIECE = 1 << 20
# What the digits of a report may depend on, beside this package.
_LIBRARIES = ("numpy", "scipy")


class CertificateError(DeemsterError):
    """A certificate does not hold: it was altered, or its report does not follow from its facts."""

    exit_code = ExitCode.GATE_FAILED


class CertifiedPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a certificate: its length and its SHA-256."""

    bytes: int
    sha256: Hex


class CertificateHeader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line of a certificate.

    The facts follow, a run file as `deemster store export` writes it; then the report; then a last line with the
    SHA-256 of everything before it.

    Attributes:
        schema_version: The format.
        run: The run's id.
        dataset: The name of its dataset.
        fingerprint: The fingerprint of its dataset.
        metrics: By a metric's name, its identity.
        versions: The software that wrote the certificate.
        facts: The run file.
        report: The report, as JSON.
    """

    schema_version: Literal["deemster.certificate.v1"]
    run: str
    dataset: str
    fingerprint: str
    metrics: dict[str, str]
    versions: dict[str, str]
    facts: CertifiedPart
    report: CertifiedPart


class VerifiedCertificate(NamedTuple):
    """A certificate that holds.

    Attributes:
        header: What it says of the run.
        sha256: The SHA-256 of everything before its last line, by which two people know that they have the same one.
    """

    header: CertificateHeader
    sha256: str


def certify_run(
    store: Store, run: str, path: Path, *, warn: Callable[[str], None] | None = None
) -> VerifiedCertificate:
    """Write the certificate of a run, once it is verified.

    Args:
        store: Where the run is stored.
        run: Its id, a unique beginning of it, or `latest`.
        path: The file; what stands there is replaced.
        warn: Gets a warning about what cannot be part of the report.

    Raises:
        StoreError: There is no such run, a process writes it, it is damaged, or the file cannot be written.
        ReportError: There is nothing to report on.
        CertificateError: The report cannot be computed again from the facts.
    """
    row = store.run(run)
    if row.status == "running":
        raise ReportError(f"`{row.id}` has not ended. A certificate is for a run that has.")
    with tempfile.TemporaryDirectory(prefix="deemster-") as folder:
        facts, report, whole = (Path(folder, name) for name in (FACTS, REPORT, "certificate"))
        export_runs(store, [row.id], facts)
        write_aside(report, _report_pieces(store, row.id, stored_report(store, row.id, warn=warn)))
        header = CertificateHeader(
            schema_version=SCHEMA,
            run=row.id,
            dataset=row.dataset,
            fingerprint=row.fingerprint,
            metrics=_identities(store, row),
            versions={"deemster": __version__, "python": platform.python_version()}
            | {name: version(name) for name in _LIBRARIES},
            facts=_measure(facts),
            report=_measure(report),
        )
        write_aside(whole, _certificate_pieces(header, facts, report))
        verified = verify_certificate(whole)
        try:
            write_aside(path, _file_pieces(whole))
        except OSError as error:
            raise StoreError(Issue(f"The file cannot be written: {error.strerror}.", str(path))) from None
    return verified


def verify_certificate(path: Path, *, extract: Path | None = None) -> VerifiedCertificate:
    """Check every byte of a certificate, and compute its report again from its facts. Nothing else is read or asked.

    Args:
        path: The certificate.
        extract: A folder that gets the facts and the report of a certificate that holds.

    Raises:
        CertificateError: It does not hold; the message says why.
        ReportError: The file cannot be read, or the parts cannot be written.
    """
    if message := missing_file(str(path)):
        raise ReportError(message)
    with tempfile.TemporaryDirectory(prefix="deemster-") as folder:
        facts, report = Path(folder, FACTS), Path(folder, REPORT)
        try:
            with path.open("rb") as file:
                verified = _split(file, str(path), facts, report)
        except OSError as error:
            raise ReportError(Issue(f"The file cannot be read: {error.strerror}.", str(path))) from None
        _check_facts(verified.header, facts, report, str(path))
        if extract is not None:
            _copy_parts((facts, report), extract)
    return verified


def _copy_parts(parts: Iterable[Path], folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for part in parts:
            write_aside(folder / part.name, _file_pieces(part))
    except OSError as error:
        raise ReportError(Issue(f"It cannot be written to: {error.strerror}.", str(folder))) from None


def _split(file: BinaryIO, where: str, facts: Path, report: Path) -> VerifiedCertificate:
    """Check the digests of a certificate, and write its parts to files."""
    whole = hashlib.sha256()
    first = file.readline(_LONGEST)
    try:
        header = msgspec.json.decode(first, type=CertificateHeader)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise _refusal(where, f"its first line is not that of a `{SCHEMA}` file") from None
    whole.update(first)
    for part, place, called in ((header.facts, facts, "facts"), (header.report, report, "report")):
        own = hashlib.sha256()
        with place.open("wb") as copy:
            for piece in _read_part(file, part.bytes):
                copy.write(piece)
                own.update(piece)
                whole.update(piece)
        if own.hexdigest() != part.sha256:
            raise _refusal(where, f"its {called} were altered" if called == "facts" else "its report was altered")
    if file.read(_LONGEST) != _last_line(whole.hexdigest()):
        raise _refusal(where, "its last line does not fit what stands before it")
    return VerifiedCertificate(header, whole.hexdigest())


def _check_facts(header: CertificateHeader, facts: Path, report: Path, where: str) -> None:
    """Compute the report from the facts, and compare it and everything that the first line says."""
    try:
        with open_store(facts.with_name("runs.db")) as store:
            taken = import_runs(store, facts)
            if [run.id for run in taken] != [header.run]:
                raise _refusal(where, "its facts are of another run")
            row = store.run(header.run)
            with facts.open("rb") as lines:
                made_by = parse_header(lines.readline(_LONGEST).rstrip(b"\n")).tool_version
            named = {
                "dataset": (header.dataset, row.dataset),
                "fingerprint": (header.fingerprint, row.fingerprint),
                "metrics": (header.metrics, _identities(store, row)),
                "version of deemster": (header.versions.get("deemster"), made_by),
            }
            for name, (given, found) in named.items():
                if given != found:
                    raise _refusal(where, f"its first line names another {name} than its facts")
            if _fingerprint(store, row) not in (None, row.fingerprint):
                raise _refusal(where, "the fingerprint of its dataset is not that of its samples")
            if not _is_same(_report_pieces(store, row.id, stored_report(store, row.id)), report):
                raise _refusal(where, _why_other_report(header))
    except (StoreError, ReportError) as error:
        said = str(error).replace(str(facts), "facts").rstrip(".")
        raise _refusal(where, f"its facts cannot be used: {said}") from None


def _why_other_report(header: CertificateHeader) -> str:
    made, here = header.versions.get("deemster", ""), __version__
    if made == here:
        return "its report does not follow from its facts"
    return f"deemster {here} makes another report of its facts. Verify it with deemster {visible(made, limit=40)}"


def _report_pieces(store: Store, run: str, report: Report) -> Iterator[bytes]:
    """The report of a run as `deemster report RUN --json` writes it."""
    return redact_report(report, quotes=quoted_details(store, run).__getitem__).pieces()


def _identities(store: Store, row: RunRow) -> dict[str, str]:
    return {card.name: card.identity for card in store.cards(row.id)}


def _fingerprint(store: Store, row: RunRow) -> str | None:
    """The fingerprint of the samples of a run; None where it has none, or where the samples were not kept."""
    samples = sorted(store.samples(row.id), key=lambda sample: sample.id)
    if not row.fingerprint or any(sample.metadata is None for sample in samples):
        return None
    return list_hash([sample.id, sample.row_hash, sample.metadata] for sample in samples)


def _certificate_pieces(header: CertificateHeader, *parts: Path) -> Iterator[bytes]:
    whole = hashlib.sha256()
    for piece in chain([msgspec.json.encode(header) + b"\n"], *map(_file_pieces, parts)):
        whole.update(piece)
        yield piece
    yield _last_line(whole.hexdigest())


def _last_line(sha256: str) -> bytes:
    return msgspec.json.encode({"sha256": sha256}) + b"\n"


def _file_pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _read_part(file: BinaryIO, size: int) -> Iterator[bytes]:
    """The next so many bytes of a file, or what there is."""
    while size > 0 and (piece := file.read(min(size, _PIECE))):
        size -= len(piece)
        yield piece


def _measure(path: Path) -> CertifiedPart:
    digest = hashlib.sha256()
    for piece in _file_pieces(path):
        digest.update(piece)
    return CertifiedPart(path.stat().st_size, digest.hexdigest())


def _is_same(pieces: Iterable[bytes], path: Path) -> bool:
    """Whether pieces are the bytes of a file."""
    with path.open("rb") as file:
        return all(file.read(len(piece)) == piece for piece in pieces) and not file.read(1)


def _refusal(where: str, why: str) -> CertificateError:
    return CertificateError(visible(f"{where}: The certificate does not hold: {why}."))
