"""Kaggle's own client, driven for what this project needs: retries, timeouts, and errors that say what to do.

Downloading a competition's zip to the disk is in `download`.
"""

from __future__ import annotations

import base64
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeVar

import requests

# kagglesdk is what Kaggle's `kaggle` package itself talks through. Importing `kaggle` would sign in at
# once, print, and make folders; and its KaggleApi ignores KAGGLE_API_ENVIRONMENT.
from kagglesdk.competitions.types import competition_api_service as api
from kagglesdk.kaggle_client import KaggleClient
from kagglesdk.kaggle_creds import KaggleCredentials
from requests.adapters import HTTPAdapter
from urllib3.exceptions import InvalidHeader
from urllib3.util import Retry

from engine.kaggle import KaggleFailure, NotAvailable, RulesNotAccepted
from engine.kaggle.credentials import NO_CREDENTIALS_STEP, find_credentials
from foundation.problems import EnvironmentProblem, Problem

# Seconds until a connection is there, and of silence on one.
TIMEOUTS = (30.0, 60.0)
# Between tries it waits twice as long each time, up to a limit, or as long as Kaggle asks, up to another.
_FIRST_WAIT, _LONGEST_WAIT, _LONGEST_ASKED = 1.0, 60.0, 900.0
_ROWS_A_PAGE = 200
_BLOCK = 1 << 17  # requests gives nothing before a block is full, and a slow line is to be seen moving
_MOST_SAID = 200
_TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504})

Wait = Callable[[float, str], None]
"""Called with how long to wait and why; it may report that, and raise to give up."""

Answer = TypeVar("Answer")


class TemporaryFailure(Exception):
    """Something that may be gone at the next try; never leaves this package.

    Attributes:
        why: what it was, without addresses, which may hold signatures.
        retry_after: seconds to wait, where Kaggle says how long.
    """

    def __init__(self, why: str, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.retry_after = retry_after


@dataclass(frozen=True)
class Team:
    """One row of a leaderboard."""

    id: int
    name: str
    score: str


def sleep(seconds: float, why: str) -> None:
    """Wait without reporting it."""
    del why
    time.sleep(seconds)


class Kaggle:
    """Kaggle, signed in; a context manager."""

    def __init__(self, *, tries: int = 8, wait: Wait = sleep) -> None:
        """Find credentials; nothing is asked yet.

        Raises:
            EnvironmentProblem: there are none.
        """
        found = find_credentials()
        if found is None:
            raise EnvironmentProblem(
                "Kaggle can't be asked", "no credentials were found", NO_CREDENTIALS_STEP
            )
        self._credentials = found
        self._tries = tries
        self._wait = wait
        self._client: Any = None

    def __enter__(self) -> Self:
        """Sign in."""
        found = self._credentials
        self._sign_in(username=found.username, password=found.key, api_token=found.token)
        if found.oauth:
            token = self._ask(lambda: KaggleCredentials.load(self._client).get_access_token(), "the login")
            self._client.__exit__(None, None, None)
            self._sign_in(api_token=token)
        return self

    def _sign_in(self, **login: str | None) -> None:
        self._client = KaggleClient(**login)
        self._client.__enter__()
        for scheme in ("https://", "http://"):
            self._client.http_client()._session.mount(scheme, _WithTimeout())

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self._client.__exit__(None, None, None)

    def listed_bytes(self, competition_id: str) -> int:
        """Return what a competition's files take, as Kaggle lists them.

        Raises:
            Problem: as for `data`.
        """
        request = _about(api.ApiListDataFilesRequest(), competition_id)
        pages = self._paged(self._competitions.list_data_files, request)
        return sum(file.total_bytes for page in pages for file in page.files or ())

    def pages(self, competition_id: str) -> dict[str, str]:
        """Read the pages of a competition's site, by their names."""
        request = _about(api.ApiListCompetitionPagesRequest(), competition_id)
        answer = self._ask(partial(self._competitions.list_competition_pages, request), competition_id)
        return {page.name: page.content for page in answer.pages or ()}

    @contextmanager
    def data(self, competition_id: str) -> Iterator[DataResponse]:
        """Request a competition's whole data once; `download` retries.

        Raises:
            TemporaryFailure: it may work later.
            RulesNotAccepted: a person must accept the rules first.
            NotAvailable: the competition is gone.
            Problem: Kaggle refuses for another reason, such as credentials that it does not know.
        """
        request = _about(api.ApiDownloadDataFilesRequest(), competition_id)
        with _translated_errors(competition_id):
            answer = self._competitions.download_data_files(request)
        with closing(DataResponse(answer, competition_id)) as response:
            yield response

    def leaderboard(self, competition_id: str) -> tuple[Team, ...]:
        """Read a competition's leaderboard, best first, as far as Kaggle gives it; the private one if it can be."""
        request = _about(api.ApiGetLeaderboardRequest(), competition_id)
        return tuple(
            Team(row.team_id, row.team_name or "", row.score or "")
            for page in self._paged(self._competitions.get_leaderboard, request)
            for row in page.submissions
        )

    def team_count(self, competition_id: str) -> int | None:
        """How many teams took part; None: Kaggle does not say."""
        request = _about(api.ApiGetCompetitionRequest(), competition_id)
        answer = self._ask(partial(self._competitions.get_competition, request), competition_id)
        return answer.team_count or None

    def data_size(self, competition_id: str) -> int | None:
        """Return the size of a competition's data, if they may be downloaded.

        A download is begun and cancelled: only that shows whether the rules are accepted.
        """

        def look() -> int | None:
            with self.data(competition_id) as response:
                return response.size

        return self.retry(look)

    def retry(self, call: Callable[[], Answer], progressed: Callable[[], bool] = lambda: False) -> Answer:
        """Call until it succeeds; failures after which something had been gained do not count.

        Raises:
            KaggleFailure: it failed too often in a row.
        """
        failures = 0
        while True:
            try:
                return call()
            except TemporaryFailure as trouble:
                failures = 1 if progressed() else failures + 1
                if failures >= self._tries:
                    why = f"{trouble.why}, {failures} times in a row"
                    raise KaggleFailure("Kaggle can't be reached", why, "Try again later.") from None
                self._wait(_seconds_to_wait(failures, trouble.retry_after), trouble.why)

    @property
    def _competitions(self) -> Any:
        return self._client.competitions.competition_api_client

    def _paged(self, method: Callable[[Any], Any], request: Any) -> Iterator[Any]:
        """All answers to a request that is answered in pages."""
        request.page_size = _ROWS_A_PAGE
        while True:
            answer = self._ask(partial(method, request), request.competition_name)
            yield answer
            if not answer.next_page_token:
                return
            request.page_token = answer.next_page_token

    def _ask(self, call: Callable[[], Any], competition_id: str) -> Any:
        def translated() -> Any:
            with _translated_errors(competition_id):
                return call()

        return self.retry(translated)


class _WithTimeout(HTTPAdapter):
    """Gives every request of Kaggle's client a timeout; it has none, and would wait for ever."""

    def send(self, request: Any, *arguments: Any, **settings: Any) -> Any:
        settings["timeout"] = TIMEOUTS
        return super().send(request, *arguments, **settings)


def _about(request: Any, competition_id: str) -> Any:
    request.competition_name = competition_id
    return request


class DataResponse:
    """A file on its way: what is known of it, and its bytes."""

    def __init__(self, response: requests.Response, competition_id: str) -> None:
        self._response = response
        self._competition_id = competition_id

    @property
    def size(self) -> int | None:
        """How many bytes the whole file has."""
        length = self._response.headers.get("Content-Length")
        return int(length) if length and length.isdigit() else None

    @property
    def identity(self) -> str | None:
        """What changes when the file does; None when the server does not say."""
        headers = self._response.headers
        return headers.get("ETag") or headers.get("Last-Modified")

    @property
    def md5(self) -> str | None:
        """The file's MD5 as the storage names it."""
        found = re.search(r"\bmd5=([A-Za-z0-9+/]{22}==)", self._response.headers.get("x-goog-hash", ""))
        return base64.b64decode(found[1]).hex() if found else None

    def chunks(self, start: int) -> Iterator[tuple[int, bytes]]:
        """The file's bytes from `start` on, each piece with its place; from 0 if the server can't do parts.

        Raises:
            TemporaryFailure: the connection was cut or fell silent.
        """
        with _translated_errors(self._competition_id), closing(self._from(start)) as response:
            at = start if response.status_code == requests.codes.partial_content else 0
            for chunk in response.iter_content(_BLOCK):
                yield at, chunk
                at += len(chunk)

    def _from(self, start: int) -> requests.Response:
        """The file from `start` on, asked for at the address and with the rights with which the whole was offered."""
        if not start:
            return self._response
        prepared = self._response.request.copy()
        prepared.headers["Range"] = f"bytes={start}-"
        if self.identity is not None:
            prepared.headers["If-Range"] = self.identity
        self._response.close()
        with requests.Session() as session:
            settings = session.merge_environment_settings(str(prepared.url), {}, True, None, None)
            response = session.send(prepared, timeout=TIMEOUTS, **settings)
        response.raise_for_status()
        return response

    def close(self) -> None:
        """Close the connection."""
        self._response.close()


def _seconds_to_wait(failures: int, asked: float | None) -> float:
    """How long to wait after so many failures in a row, with some chance in it, or as Kaggle has asked."""
    if asked is not None:
        return min(asked, _LONGEST_ASKED)
    longest: float = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** (failures - 1))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - it spreads requests, it guards nothing


@contextmanager
def _translated_errors(competition_id: str) -> Iterator[None]:
    """Turn the errors of requests to Kaggle into problems.

    Raises:
        TemporaryFailure: it may work later.
        Problem: it won't, and why.
    """
    try:
        yield
    except requests.RequestException as error:
        # `from None`: the original names the address, whose signature is a secret.
        raise _translated(error, competition_id) from None


def _translated(error: requests.RequestException, competition_id: str) -> Problem | TemporaryFailure:
    """Turn an error of a request into a problem, or into a failure worth retrying."""
    response = error.response
    if response is None:
        return TemporaryFailure(_reason(error))
    status = response.status_code
    if status in _TEMPORARY:
        return TemporaryFailure(f"Kaggle answered {status}", _seconds_of(response.headers.get("Retry-After")))
    if response.request.method == "GET":
        # Only the storage is asked in this way; another try gets a new address with a new signature.
        return TemporaryFailure(f"Kaggle's storage answered {status}")
    url = f"https://www.kaggle.com/c/{competition_id}"
    if status == 401:
        return EnvironmentProblem(
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
    return KaggleFailure(f"{competition_id}: Kaggle answered {status}", _said(response), "Try again later.")


def _said(response: requests.Response) -> str:
    """What Kaggle says in its answer, on one line; not the exception's text, which names the address."""
    try:
        message = response.json().get("message", "")
    except (ValueError, AttributeError):
        return ""
    return " ".join(str(message).split())[:_MOST_SAID].rstrip(".")


def _reason(error: BaseException) -> str:
    if isinstance(error, requests.Timeout):
        return "it stopped sending data"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        reason = getattr(cause, "reason", None) or (cause.args[0] if cause.args else None)
        cause = cause.__cause__ or (reason if isinstance(reason, BaseException) else None)
    return "the connection was cut"


def _seconds_of(retry_after: str | None) -> float | None:
    """Read a Retry-After header: seconds, or a date."""
    try:
        return Retry().parse_retry_after(retry_after) if retry_after else None
    except InvalidHeader:
        return None
