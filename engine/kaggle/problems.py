"""What Kaggle may refuse, told apart by what a person has to do about it."""

from __future__ import annotations

from foundation.problems import DataProblem, EnvironmentProblem


class NoCredentials(EnvironmentProblem):
    """There is nothing to sign in with."""


class BadCredentials(EnvironmentProblem):
    """Kaggle does not know who asks (401)."""


class RulesNotAccepted(EnvironmentProblem):
    """A person has to accept the competition's rules in a browser (403)."""


class NotAvailable(DataProblem):
    """Kaggle does not offer the competition any more (404)."""


class KaggleTrouble(EnvironmentProblem):
    """Kaggle or the way to it does not work, and patience has not helped."""


class Passing(Exception):
    """Something that may be gone at the next try; never leaves this package.

    Attributes:
        why: what it was, without addresses, which may hold signatures.
        retry_after: seconds to wait, where Kaggle says how long.
    """

    def __init__(self, why: str, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.retry_after = retry_after
