"""An audit or a calibration as a report: its result, and the JSON, Markdown and HTML of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from deemster.alignment.calibration_result import Calibration
from deemster.errors import ReportError, list_names
from deemster.report.audit_page import audit_page
from deemster.report.calibration_page import calibration_page
from deemster.report.calibration_report import calibration_sections
from deemster.report.dataset_audit_report import dataset_audit_sections
from deemster.report.dataset_health import DatasetAudit
from deemster.report.gate_audit_report import gate_audit_sections
from deemster.report.gate_error_rates import GateAudit
from deemster.report.judge_audit_report import judge_audit_sections
from deemster.report.judge_bias import JudgeAudit
from deemster.report.metric_audit_report import metric_audit_sections
from deemster.report.mutation_score import MetricAudit
from deemster.text.destination import Destination, write_pieces
from deemster.text.markdown_layout import render_markdown
from deemster.text.text_sections import TextSection

Found = TypeVar("Found", JudgeAudit, MetricAudit, GateAudit, DatasetAudit, Calibration)
_SECTIONS: dict[type, Callable[[Any], list[TextSection]]] = {
    JudgeAudit: judge_audit_sections,
    MetricAudit: metric_audit_sections,
    GateAudit: gate_audit_sections,
    DatasetAudit: dataset_audit_sections,
    Calibration: calibration_sections,
}
_EXTENSIONS = {".json": "json", ".md": "markdown", ".html": "html"}


class AuditReport(Generic[Found]):
    """An audit or a calibration, and its renderings.

    Args:
        result: What was found.
    """

    def __init__(self, result: Found) -> None:
        self.result: Found = result

    def sections(self) -> list[TextSection]:
        """What it says to people, in order."""
        return _SECTIONS[type(self.result)](self.result)

    def to_json(self) -> str:
        """The result as JSON; that of a calibration is the file that a suite names under `calibration`."""
        return msgspec.json.format(msgspec.json.encode(self.result, order="deterministic"), indent=2).decode() + "\n"

    def to_markdown(self) -> str:
        """The report as Markdown."""
        return render_markdown(self.sections())

    def to_html(self) -> str:
        """The report as one HTML page that loads nothing."""
        return calibration_page(self.result) if isinstance(self.result, Calibration) else audit_page(self.sections())

    def write(self, destination: Destination) -> None:
        """Write the report.

        Args:
            destination: The file, and its format: `json`, `markdown` or `html`.

        Raises:
            ReportError: It cannot be written.
        """
        texts = {"json": self.to_json, "markdown": self.to_markdown, "html": self.to_html}
        write_pieces((texts[destination.format]().encode(),), destination)

    def save(self, path: str | Path) -> None:
        """Write the report, in the format its extension says: .json, .md or .html.

        Args:
            path: The file.

        Raises:
            ReportError: The extension is none of these, or the file cannot be written.
        """
        suffix = Path(path).suffix.lower()
        if suffix not in _EXTENSIONS:
            raise ReportError(f"An audit is written as {list_names(_EXTENSIONS)}, not as `{suffix}`.")
        self.write(Destination(_EXTENSIONS[suffix], str(path)))

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def __repr__(self) -> str:
        return f"<AuditReport of a {type(self.result).__name__}>"
