"""What QuACK's functions do otherwise than their contracts: docs/findings.md shows the defects with scripts."""

from __future__ import annotations

from backends.base import Declaration

DECLARED: tuple[Declaration, ...] = ()
