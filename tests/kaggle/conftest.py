from __future__ import annotations

from tests.console.cli.conftest import cli
from tests.kaggle.fixtures import competition, loopback

__all__ = ["cli", "competition", "loopback"]
