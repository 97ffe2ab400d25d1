"""Kaggle's API: credentials, a client with retries and timeouts, and downloads that resume."""
