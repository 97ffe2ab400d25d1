"""The demo's data: made-up raw data in Kaggle's own layout for six competitions, learnable but noisy."""

from engine.demo.generating import DEMO_COMPETITIONS, generate

__all__ = ["DEMO_COMPETITIONS", "generate"]
