"""Measurements behind the project's promises about speed, each as a ratio within one run."""
