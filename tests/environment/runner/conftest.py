"""One prepared dataset for runners."""

from __future__ import annotations

from tests.engine.conftest import prepared_data

__all__ = ["prepared_data"]
