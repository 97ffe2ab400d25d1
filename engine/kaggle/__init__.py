"""Kaggle: what it offers of a competition, fetched through its own client with patience and without surprises."""
