from __future__ import annotations

from tests.kaggle.fixtures import loopback

__all__ = ["loopback"]
