"""Kaggle's own client, driven for what this project needs: retries, timeouts, and errors that say what to do.

Downloading a competition's zip to the disk is in `download`.
"""

from __future__ import annotations

import base64
import binascii
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from engine.kaggle.credentials import NO_CREDENTIALS_STEP, Credentials, find_credentials
from foundation.problems import DataProblem, EnvironmentProblem, Problem

if TYPE_CHECKING:
    import requests

# Seconds until a connection is there, and of silence on one.
TIMEOUTS = (30.0, 60.0)
_LONGEST_ASKED = 900.0
_FILES_A_PAGE = _ROWS_A_PAGE = 200
_BLOCK = 1 << 17  # requests gives nothing before a block is full, and a slow line is to be seen moving
_MOST_SAID = 200
_TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504})

Wait = Callable[[float, str], None]
"""Called with how long to wait and why; it may report that, and raise to give up."""

Result = TypeVar("Result")


class NoCredentials(EnvironmentProblem):
    """There is nothing to sign in with."""


class BadCredentials(EnvironmentProblem):
    """Kaggle does not know who asks (401)."""


class RulesNotAccepted(EnvironmentProblem):
    """A person has to accept the competition's rules in a browser (403)."""


class NotAvailable(DataProblem):
    """Kaggle does not offer the competition any more (404)."""


class KaggleFailure(EnvironmentProblem):
    """Kaggle or the way to it does not work, and trying again has not helped."""


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
class RemoteFile:
    """One file of a competition's data."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Page:
    """One page of a competition's site."""

    name: str
    text: str


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


@dataclass(frozen=True)
class Retries:
    """How often to try, and how long to wait in between: doubling, with some chance in it."""

    tries: int = 8
    first_seconds: float = 1.0
    most_seconds: float = 60.0

    def delay(self, failures: int, asked: float | None = None) -> float:
        """How long to wait after so many failures in a row."""
        if asked is not None:
            return min(asked, _LONGEST_ASKED)
        longest: float = min(self.most_seconds, self.first_seconds * 2 ** (failures - 1))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - it spreads requests, it guards nothing


class Kaggle:
    """Kaggle, signed in; a context manager."""

    def __init__(
        self,
        credentials: Credentials | None = None,
        *,
        retries: Retries | None = None,
        wait: Wait = sleep,
    ) -> None:
        """Find credentials; nothing is asked yet.

        Raises:
            NoCredentials: there are none.
        """
        found = credentials or find_credentials()
        if found is None:
            raise NoCredentials(
                "Kaggle can't be asked",
                "no credentials were found",
                NO_CREDENTIALS_STEP,
            )
        self._credentials = found
        self.retries = retries or Retries()
        self.wait = wait
        self._client: Any = None

    def __enter__(self) -> Self:
        """Load Kaggle's client and sign in."""
        # kagglesdk is what Kaggle's `kaggle` package itself talks through. Importing `kaggle` would sign
        # in at once, print, and make folders; and its KaggleApi ignores KAGGLE_API_ENVIRONMENT.
        from kagglesdk.kaggle_client import KaggleClient

        found = self._credentials
        self._client = KaggleClient(username=found.username, password=found.key, api_token=found.token)
        self._client.__enter__()
        _set_timeouts(self._client)
        if found.oauth:
            token = self._retry(lambda: _oauth_token(self._client), "the login")
            self._client.__exit__(None, None, None)
            self._client = KaggleClient(api_token=token)
            self._client.__enter__()
            _set_timeouts(self._client)
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self._client.__exit__(None, None, None)

    def files(self, competition_id: str) -> tuple[RemoteFile, ...]:
        """List a competition's files with their sizes.

        Raises:
            Problem: as for `data`.
        """
        from kagglesdk.competitions.types.competition_api_service import ApiListDataFilesRequest

        request = ApiListDataFilesRequest()
        request.competition_name = competition_id
        request.page_size = _FILES_A_PAGE
        return tuple(
            RemoteFile(file.name, file.total_bytes)
            for page in self._paged(self._api.list_data_files, request, competition_id)
            for file in page.files or ()
        )

    def pages(self, competition_id: str) -> tuple[Page, ...]:
        """Read the pages of a competition's site."""
        from kagglesdk.competitions.types.competition_api_service import ApiListCompetitionPagesRequest

        request = ApiListCompetitionPagesRequest()
        request.competition_name = competition_id
        answer = self._retry(lambda: self._api.list_competition_pages(request), competition_id)
        return tuple(Page(page.name, page.content) for page in answer.pages or ())

    @contextmanager
    def data(self, competition_id: str) -> Iterator[DataResponse]:
        """Request a competition's whole data once; `download` retries.

        Raises:
            TemporaryFailure: it may work later.
            BadCredentials: Kaggle does not know who asks.
            RulesNotAccepted: a person must accept the rules first.
            NotAvailable: the competition is gone.
        """
        from kagglesdk.competitions.types.competition_api_service import ApiDownloadDataFilesRequest

        request = ApiDownloadDataFilesRequest()
        request.competition_name = competition_id
        response = DataResponse(
            _translate_errors(lambda: self._api.download_data_files(request), competition_id), competition_id
        )
        try:
            yield response
        finally:
            response.close()

    def leaderboard(self, competition_id: str) -> tuple[Team, ...]:
        """Read a competition's leaderboard, best first, as far as Kaggle gives it; the private one if it can be."""
        from kagglesdk.competitions.types.competition_api_service import ApiGetLeaderboardRequest

        request = ApiGetLeaderboardRequest()
        request.competition_name = competition_id
        request.page_size = _ROWS_A_PAGE
        return tuple(
            Team(row.team_id, row.team_name or "", row.score or "")
            for page in self._paged(self._api.get_leaderboard, request, competition_id)
            for row in page.submissions
        )

    def team_count(self, competition_id: str) -> int | None:
        """How many teams took part; None: Kaggle does not say."""
        from kagglesdk.competitions.types.competition_api_service import ApiGetCompetitionRequest

        request = ApiGetCompetitionRequest()
        request.competition_name = competition_id
        answer = self._retry(lambda: self._api.get_competition(request), competition_id)
        return answer.team_count or None

    def data_size(self, competition_id: str) -> int | None:
        """Return the size of a competition's data, if they may be downloaded.

        A download is begun and cancelled: only that shows whether the rules are accepted.
        """

        def look() -> int | None:
            with self.data(competition_id) as response:
                return response.size

        return retry(look, self.retries, wait=self.wait, progressed=lambda: False)

    @property
    def _api(self) -> Any:
        return self._client.competitions.competition_api_client

    def _paged(self, ask: Callable[[Any], Any], request: Any, competition_id: str) -> Iterator[Any]:
        """All answers to a request that is answered in pages."""
        while True:
            answer = self._retry(partial(ask, request), competition_id)
            yield answer
            if not answer.next_page_token:
                return
            request.page_token = answer.next_page_token

    def _retry(self, call: Callable[[], Result], competition_id: str) -> Result:
        return retry(
            lambda: _translate_errors(call, competition_id),
            self.retries,
            wait=self.wait,
            progressed=lambda: False,
        )


def _oauth_token(client: Any) -> str:
    from kagglesdk.kaggle_creds import KaggleCredentials

    token: str = KaggleCredentials.load(client).get_access_token()
    return token


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
        for part in self._response.headers.get("x-goog-hash", "").split(","):
            name, _, value = part.strip().partition("=")
            if name == "md5":
                try:
                    return base64.b64decode(value, validate=True).hex()
                except binascii.Error:
                    return None
        return None

    def chunks(self, start: int) -> Iterator[tuple[int, bytes]]:
        """The file's bytes from `start` on, each piece with its place; from 0 if the server can't do parts.

        Raises:
            TemporaryFailure: the connection was cut or fell silent.
        """
        import requests

        response = self._response
        at = 0
        try:
            if start:
                response = self._part(start)
                at = start if response.status_code == requests.codes.partial_content else 0
            for chunk in response.iter_content(_BLOCK):
                yield at, chunk
                at += len(chunk)
        except requests.RequestException as error:
            raise _translated(error, self._competition_id) from None
        finally:
            response.close()

    def _part(self, start: int) -> requests.Response:
        """Ask for the rest, at the address and with the rights with which the whole was offered."""
        import requests

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


def retry(
    call: Callable[[], Result], retries: Retries, *, wait: Wait = sleep, progressed: Callable[[], bool]
) -> Result:
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
            if failures >= retries.tries:
                raise KaggleFailure(
                    "Kaggle can't be reached", f"{trouble.why}, {failures} times in a row", "Try again later."
                ) from None
            wait(retries.delay(failures, trouble.retry_after), trouble.why)


def _translate_errors(call: Callable[[], Result], competition_id: str) -> Result:
    """Make a call to Kaggle and turn its errors into problems.

    Raises:
        TemporaryFailure: it may work later.
        Problem: it won't, and why.
    """
    import requests

    try:
        return call()
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
    return KaggleFailure(f"{competition_id}: Kaggle answered {status}", _said(response), "Try again later.")


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
    from urllib3.exceptions import InvalidHeader
    from urllib3.util import Retry

    try:
        return Retry().parse_retry_after(retry_after) if retry_after else None
    except InvalidHeader:
        return None


def _set_timeouts(client: Any) -> None:
    """Give every request of Kaggle's client a timeout; it has none, and would wait for ever."""
    from requests.adapters import HTTPAdapter

    class WithTimeout(HTTPAdapter):
        def send(self, request: Any, *arguments: Any, **settings: Any) -> Any:
            settings["timeout"] = TIMEOUTS
            return super().send(request, *arguments, **settings)

    session = client.http_client()._session
    for scheme in ("https://", "http://"):
        session.mount(scheme, WithTimeout())
