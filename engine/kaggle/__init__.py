"""Kaggle's API: credentials, a client with retries and timeouts, and downloads that resume.

Its errors and how long to wait for it are defined here, because the client takes long to import.
"""

from typing import ClassVar

from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem

LONGEST_ASKED = 86_400.0
"""A longer Retry-After of Kaggle is cut to this."""

USUAL_PATIENCE = 300.0
"""The default for how many seconds to wait for Kaggle; the engine's queue has a schedule of its own."""


class RulesNotAccepted(EnvironmentProblem):
    """A person has to accept the competition's rules in a browser (403)."""

    code: ClassVar[str] = "rules_not_accepted"


class NotAvailable(DataProblem):
    """Kaggle does not offer the competition any more (404)."""

    code: ClassVar[str] = "not_available"


class CredentialsRefused(EnvironmentProblem):
    """Kaggle accepts none of the available credentials (401), or there are none."""

    code: ClassVar[str] = "credentials_refused"


class KaggleFailure(EnvironmentProblem):
    """Kaggle sent an unusable answer or damaged data."""

    code: ClassVar[str] = "kaggle_failure"


class KaggleUnreachable(EnvironmentProblem):
    """Kaggle or the network does not work at the moment."""

    code: ClassVar[str] = "kaggle_unreachable"


def unreachable(why: str, retry_after: float | None = None) -> KaggleUnreachable:
    """Return the problem of a failed request; `retry_after` are the seconds to wait, where Kaggle says so."""
    return KaggleUnreachable("Kaggle can't be reached", why, "Try again later.", retry_after=retry_after)
