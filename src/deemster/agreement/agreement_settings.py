"""The settings of an agreement that files and the command line can say."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from deemster.agreement._bootstrap_replicates import BootstrapSettings, Method
from deemster.agreement.result_models import AbstentionMode
from deemster.formats.schema_validation import OpenShare, Seed

_OF_BOOTSTRAP = {"bootstrap": "method", "n_bootstrap": "replicates", "confidence": "confidence", "seed": "seed"}


class AgreementSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The settings of an agreement, for `compute_metrics`, which has their defaults."""

    bootstrap: Method | UnsetType = UNSET
    n_bootstrap: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    confidence: OpenShare | UnsetType = UNSET
    seed: Seed | UnsetType = UNSET
    na_mode: AbstentionMode | UnsetType = UNSET
    cannot_assess: AbstentionMode | UnsetType = UNSET
    epsilon: Annotated[float, Meta(ge=0, lt=1)] | UnsetType = UNSET
    group: str | UnsetType = UNSET
    system: str | UnsetType = UNSET
    pair: str | UnsetType = UNSET
    cluster: str | UnsetType = UNSET
    per_slice: bool | UnsetType = UNSET

    @property
    def stated(self) -> dict[str, Any]:
        """What is said, by name."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not UNSET}

    @property
    def arguments(self) -> dict[str, Any]:
        """What is said, as arguments of `compute_metrics`."""
        arguments = self.stated
        bootstrap = {field: arguments.pop(name) for name, field in _OF_BOOTSTRAP.items() if name in arguments}
        return {**arguments, "bootstrap": BootstrapSettings(**bootstrap)}
