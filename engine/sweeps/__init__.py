"""Sweeps: checking, forecasting and creating them, importing run groups as sweeps, and removing sweeps."""
