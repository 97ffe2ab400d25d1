"""Kaggle's API: credentials, a client with retries and timeouts, and downloads that resume.

Its errors are here, because the client takes long to import.
"""

from foundation.problems import DataProblem, EnvironmentProblem


class RulesNotAccepted(EnvironmentProblem):
    """A person has to accept the competition's rules in a browser (403)."""


class NotAvailable(DataProblem):
    """Kaggle does not offer the competition any more (404)."""


class KaggleFailure(EnvironmentProblem):
    """Kaggle or the way to it does not work, and trying again has not helped."""
