"""How this backend's declarations are written down: one reason for many properties and dtypes."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from backends.base import CPU, Declaration, declarations


def declared(
    operator: str,
    reason: str,
    properties: Mapping[str, tuple[torch.dtype, ...]],
    device: str = CPU,
    by_chance: bool = False,
) -> tuple[Declaration, ...]:
    return declarations(operator, reason, properties, device, by_chance)
