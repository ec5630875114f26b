"""`deemster verify`: checks a certificate, and computes its report again from its facts."""

from __future__ import annotations

from pathlib import Path

import click

from deemster.cli._console import note, write_out
from deemster.errors import visible


@click.command("verify", short_help="Check a certificate, and compute its report again from its facts.")
@click.argument("file", type=click.Path())
@click.option("--extract", metavar="FOLDER", type=click.Path(file_okay=False), help="Write its facts and report there.")
def command(*, file: str, extract: str | None) -> None:
    """Check a certificate, and compute its report again from its facts. Nothing is asked over the network.

    It says that the report follows from the facts, and that nothing was altered since. It does not say who made
    it: compare the SHA-256 with the one that the maker published or signed.

    Exit codes: 0 it holds, 1 it does not, 2 the file cannot be read.
    """
    from deemster.runs.certificate import verify_certificate

    header, sha256 = verify_certificate(Path(file), extract=None if extract is None else Path(extract))
    lines = (
        f"run: {header.run}",
        f"dataset: {header.dataset}, fingerprint {header.fingerprint}",
        *(f"metric: {identity}" for identity in header.metrics.values()),
        f"made with: {', '.join(f'{name} {version}' for name, version in header.versions.items())}",
        f"sha256: {sha256}",
        "The report follows from the facts, byte for byte.",
    )
    for line in lines:
        write_out(f"{visible(line)}\n")
    if extract is not None:
        note(f"wrote run.jsonl and report.json to {visible(extract)}")
