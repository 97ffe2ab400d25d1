"""Kaggle's API: credentials, a client with retries and timeouts, and downloads that resume.

Its errors are here, because the client takes long to import.
"""

from foundation.problems import DataProblem, EnvironmentProblem


class RulesNotAccepted(EnvironmentProblem):
    """A person has to accept the competition's rules in a browser (403)."""


class NotAvailable(DataProblem):
    """Kaggle does not offer the competition any more (404)."""


class CredentialsRefused(EnvironmentProblem):
    """Kaggle accepts none of the credentials that there are (401), or there are none."""


class KaggleFailure(EnvironmentProblem):
    """Kaggle answers something that can't be used, or data that are damaged."""


class KaggleUnreachable(EnvironmentProblem):
    """Kaggle or the way to it does not work at the moment.

    Attributes:
        retry_after: after how many seconds Kaggle wants to be asked again, where it says so.
    """

    def __init__(self, why: str, retry_after: float | None = None) -> None:
        super().__init__("Kaggle can't be reached", why, "Try again later.")
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[object, ...]:
        """Keep what it is made of."""
        return (type(self), (self.why, self.retry_after))
