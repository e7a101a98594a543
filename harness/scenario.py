"""Where stored reproducers import `Scenario` from; it lives in `harness.judging.scenario`."""

from __future__ import annotations

from harness.judging.scenario import Scenario

__all__ = ["Scenario"]
