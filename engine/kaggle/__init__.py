"""Kaggle's API: credentials, a client with retries and timeouts, and downloads that resume.

Its errors are defined here, because the client takes long to import.
"""

from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem


class RulesNotAccepted(EnvironmentProblem):
    """A person has to accept the competition's rules in a browser (403)."""


class NotAvailable(DataProblem):
    """Kaggle does not offer the competition any more (404)."""


class CredentialsRefused(EnvironmentProblem):
    """Kaggle accepts none of the available credentials (401), or there are none."""


class KaggleFailure(EnvironmentProblem):
    """Kaggle sent an unusable answer or damaged data."""


class KaggleUnreachable(EnvironmentProblem):
    """Kaggle or the network does not work at the moment.

    Attributes:
        retry_after: the seconds to wait before the next request, where Kaggle says so.
    """

    def __init__(self, why: str, retry_after: float | None = None) -> None:
        super().__init__("Kaggle can't be reached", why, "Try again later.")
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle it with its own arguments."""
        return (type(self), (self.why, self.retry_after))
