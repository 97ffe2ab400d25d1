"""What Kaggle's refusals mean: which of them may pass, and what a person has to do about the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from engine.kaggle.patience import seconds_of
from engine.kaggle.problems import BadCredentials, KaggleTrouble, NotAvailable, Passing, RulesNotAccepted
from foundation.problems import Problem

if TYPE_CHECKING:
    import requests

_MOST_SAID = 200
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})

Result = TypeVar("Result")


def in_our_words(call: Callable[[], Result], competition_id: str) -> Result:
    """Do what asks Kaggle.

    Raises:
        Passing: it may work later.
        Problem: it won't, and why.
    """
    import requests

    try:
        return call()
    except requests.RequestException as error:
        # `from None`: the original names the address, whose signature is a secret.
        raise understood(error, competition_id) from None


def understood(error: requests.RequestException, competition_id: str) -> Problem | Passing:
    """What an error of a request means."""
    response = error.response
    if response is None:
        return Passing(_reason(error))
    status = response.status_code
    if status in _PASSING:
        return Passing(f"Kaggle answered {status}", seconds_of(response.headers.get("Retry-After")))
    if response.request.method == "GET":
        # Only the storage is asked in this way; another try gets a new address with a new signature.
        return Passing(f"Kaggle's storage answered {status}")
    url = f"https://www.kaggle.com/c/{competition_id}"
    if status == 401:
        return BadCredentials(
            "Kaggle does not accept the credentials",
            "it answered 401",
            "Make a new token on kaggle.com (Settings, API).",
        )
    if status == 403:
        return RulesNotAccepted(
            f"{competition_id}: Kaggle refuses the download",
            _said(response) or "it answered 403",
            f"Accept the rules at {url}/rules (on closed competitions through the tab Data), then try again.",
        )
    if status in (404, 410):
        return NotAvailable(
            f"{competition_id}: no longer available on Kaggle",
            f"it answered {status}",
            f"See {url}; with a copy of its data, put {competition_id}.zip into the dataset's folder.",
        )
    return KaggleTrouble(f"{competition_id}: Kaggle answered {status}", _said(response), "Try again later.")


def _said(response: requests.Response) -> str:
    """What Kaggle says in its answer, on one line; not the exception's text, which names the address."""
    try:
        message = response.json().get("message", "")
    except (ValueError, AttributeError):
        return ""
    return " ".join(str(message).split())[:_MOST_SAID].rstrip(".")


def _reason(error: BaseException) -> str:
    import requests

    if isinstance(error, requests.Timeout):
        return "it has fallen silent"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        reason = getattr(cause, "reason", None) or (cause.args[0] if cause.args else None)
        cause = cause.__cause__ or (reason if isinstance(reason, BaseException) else None)
    return "the connection was cut"
