"""A wrapper of Kaggle's own client with retries, timeouts, and errors that say what to do.

Downloading a competition's zip to the disk is in `engine.kaggle.download`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self

import requests

# kagglesdk is the client below Kaggle's `kaggle` package. Importing `kaggle` would sign in immediately, print, and
# create folders; and its KaggleApi ignores KAGGLE_API_ENVIRONMENT.
from kagglesdk.competitions.types import competition_api_service as api
from kagglesdk.kaggle_client import KaggleClient
from kagglesdk.kaggle_creds import KaggleCredentials
from kagglesdk.kaggle_http_client import KaggleHttpClient
from kagglesdk.kernels.types.kernels_api_service import ApiGetKernelRequest
from requests.adapters import HTTPAdapter

from mlebench_console.engine.downloads import Answer, TemporaryFailure, Wait, retrying, sleep
from mlebench_console.engine.kaggle import (
    LONGEST_ASKED,
    USUAL_PATIENCE,
    KaggleFailure,
    NotAvailable,
    RulesNotAccepted,
    unreachable,
)
from mlebench_console.engine.kaggle.credentials import Credentials, find_credentials, none_accepted
from mlebench_console.environment.container.redaction import TextRedactor
from mlebench_console.foundation.backoff import seconds_asked
from mlebench_console.foundation.clock import Clock, SystemClock
from mlebench_console.foundation.daemons import write_log
from mlebench_console.foundation.files import replacing
from mlebench_console.foundation.problems import Problem

# Seconds to connect, and between two pieces of data.
TIMEOUTS = (30.0, 60.0)
_ROWS_A_PAGE = 200
_BLOCK = (
    1 << 17
)  # small, because requests returns only full blocks, and progress must show on a slow line too
_MOST_CHARACTERS = 200
_TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504})
_EXPIRES_SOON = timedelta(minutes=1)
_ANY_COMPETITION = "spaceship-titanic"


class _NotAccepted(Exception):
    """Kaggle does not accept the credentials that were sent (401)."""


@dataclass(frozen=True)
class PublishedKernel:
    """A kernel as Kaggle delivers it.

    Attributes:
        kind: `notebook` or `script`.
        language: `python`, or another one.
        version: its version number on Kaggle.
    """

    source: str
    kind: str
    language: str
    version: int


class Kaggle:
    """A client of Kaggle that uses the first credentials that Kaggle accepts; a context manager.

    Credentials are read when they are needed, so that new or renewed ones are used.
    """

    def __init__(
        self,
        *,
        patience: float = USUAL_PATIENCE,
        wait: Wait = sleep,
        clock: Clock | None = None,
        credentials: Callable[[], Sequence[Credentials]] = find_credentials,
    ) -> None:
        """Create it without sending anything.

        Args:
            patience: for how many seconds to retry while Kaggle can't be reached; 0: no retries, but an interrupted
                download continues as long as it makes progress.
            wait: waits before a retry.
            clock: measures the time of retries.
            credentials: returns the available credentials.
        """
        self._patience = patience
        self._wait = wait
        self._clock = clock or SystemClock()
        self._find = credentials
        self._login: Credentials | None = None
        self._refused: list[Credentials] = []
        self._token = ""
        self._expired_token = ""
        self._is_new_token = False
        self._redaction = TextRedactor()

    def __enter__(self) -> Self:
        """Open the connections."""
        # Without a token, the client would look for credentials itself, and fail on a damaged file.
        self._client = KaggleClient(api_token="none")  # noqa: S106 - not a secret
        self._client.__enter__()
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, _WithTimeout())
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self._client.__exit__(None, None, None)

    def check_credentials(self) -> None:
        """Send a request that needs credentials.

        Raises:
            Problem: as for `data`.
        """
        request = _about(api.ApiGetCompetitionRequest(), _ANY_COMPETITION)
        try:
            self._ask(lambda asked: asked.get_competition(request), _ANY_COMPETITION)
        except (RulesNotAccepted, NotAvailable):
            return  # Kaggle refuses the competition, but accepts the credentials

    def listed_bytes(self, competition_id: str) -> int:
        """Return the total size of a competition's files, as Kaggle lists them.

        Raises:
            Problem: as for `data`.
        """
        # The summary takes one request, while a listing of 70,000 files takes 350.
        summary = _about(api.ApiGetCompetitionDataFilesSummaryRequest(), competition_id)
        with suppress(NotAvailable, KaggleFailure):  # the listing below decides
            answer = self._ask(
                lambda asked: asked.get_competition_data_files_summary(summary), competition_id
            )
            kinds = answer.file_summary_info.file_types if answer.file_summary_info else ()
            total: int = sum(kind.total_size for kind in kinds or ())
            if total:
                return total
        request = _about(api.ApiListDataFilesRequest(), competition_id)
        pages = self._paged(lambda asked: asked.list_data_files, request)
        return sum(file.total_bytes for page in pages for file in page.files or ())

    def pages(self, competition_id: str) -> dict[str, str]:
        """Read the pages of a competition's site, by their names."""
        request = _about(api.ApiListCompetitionPagesRequest(), competition_id)
        answer = self._ask(lambda asked: asked.list_competition_pages(request), competition_id)
        return {page.name: page.content for page in answer.pages or ()}

    @contextmanager
    def data(self, competition_id: str) -> Iterator[DataResponse]:
        """Request a competition's data once, without retries, which are up to `download`.

        Raises:
            TemporaryFailure: it may work later.
            CredentialsRefused: Kaggle accepts none of the credentials.
            RulesNotAccepted: a person must accept the rules first.
            NotAvailable: the competition is gone.
            Problem: Kaggle refuses for another reason.
        """
        request = _about(api.ApiDownloadDataFilesRequest(), competition_id)
        answer = self._signed(lambda asked: asked.download_data_files(request), competition_id)
        with closing(DataResponse(answer, partial(self._errors, competition_id))) as response:
            yield response

    def leaderboard(self, competition_id: str) -> list[str]:
        """Read the teams' scores, best first, as far as Kaggle returns them; the private ones if available."""
        request = _about(api.ApiGetLeaderboardRequest(), competition_id)
        pages = self._paged(lambda asked: asked.get_leaderboard, request)
        return [row.score or "" for page in pages for row in page.submissions]

    def team_count(self, competition_id: str) -> int | None:
        """Return how many teams took part; None where Kaggle does not say."""
        request = _about(api.ApiGetCompetitionRequest(), competition_id)
        answer = self._ask(lambda asked: asked.get_competition(request), competition_id)
        return answer.team_count or None

    def kernel(self, ref: str) -> PublishedKernel:
        """Read a public kernel, named `author/name`.

        Raises:
            RulesNotAccepted: it is private (403).
            NotAvailable: it is gone (404).
            Problem: as for `data`.
        """
        request = ApiGetKernelRequest()
        request.user_name, _, request.kernel_slug = ref.partition("/")
        answer = self._ask(lambda _: self._client.kernels.kernels_api_client.get_kernel(request), ref)
        blob, about = answer.blob, answer.metadata
        return PublishedKernel(
            source=blob.source,
            kind=blob.kernel_type or about.kernel_type or "",
            language=blob.language or about.language or "",
            version=about.current_version_number or 0,
        )

    def data_size(self, competition_id: str) -> int | None:
        """Return the size of a competition's data, if they may be downloaded.

        This starts and cancels a download, because only that shows whether the rules are accepted.
        """

        def ask_size() -> int | None:
            with self.data(competition_id) as response:
                return response.size

        return self.retry(ask_size)

    def retry(self, call: Callable[[], Answer], gained: Callable[[], int] = lambda: 0) -> Answer:
        """Call until it succeeds, or the patience is over.

        Args:
            call: what to do.
            gained: returns the bytes received since it was last called; progress extends the patience.

        Raises:
            KaggleUnreachable: it has failed for too long.
        """
        try:
            return retrying(call, gained, patience=self._patience, wait=self._wait, clock=self._clock)
        except TemporaryFailure as trouble:
            raise unreachable(trouble.why, trouble.retry_after) from None

    @property
    def _session(self) -> Any:
        return self._client.http_client()._session

    def _paged(self, method: Callable[[Any], Callable[[Any], Any]], request: Any) -> Iterator[Any]:
        """Yield all pages of the answer to a request."""
        request.page_size = _ROWS_A_PAGE
        while True:
            answer = self._ask(lambda asked: method(asked)(request), request.competition_name)
            yield answer
            if not answer.next_page_token:
                return
            request.page_token = answer.next_page_token

    def _ask(self, call: Callable[[Any], Any], competition_id: str) -> Any:
        return self.retry(lambda: self._signed(call, competition_id))

    def _signed(self, call: Callable[[Any], Any], competition_id: str) -> Any:
        """Call Kaggle's competition API with credentials, trying the next ones where Kaggle refuses some.

        Raises:
            CredentialsRefused: Kaggle accepts none.
            TemporaryFailure: it may work later.
            Problem: Kaggle refuses for another reason.
        """
        while True:
            if self._login is None:
                self._sign_in()
            try:
                with self._errors(competition_id):
                    answer = call(self._client.competitions.competition_api_client)
            except _NotAccepted:
                self._refuse_login()
            else:
                self._is_new_token = False
                return answer

    def _sign_in(self) -> None:
        """Use the first credentials that were not refused, read again because they may have been renewed.

        Raises:
            CredentialsRefused: there are none.
            TemporaryFailure: an OAuth login can't get its token now.
        """
        found = self._find()
        self._hide(secret for each in found for secret in each.secrets)
        for login in found:
            if login.problem or login in self._refused:
                continue
            self._token = login.token or self._access_token(login)
            if self._token:
                self._session.auth = KaggleHttpClient.BearerAuth(self._token)
            elif login.key:
                self._session.auth = (login.username, login.key)
            else:
                continue
            self._login = login
            return
        raise none_accepted(found, self._refused)

    def _access_token(self, login: Credentials) -> str:
        """Return the access token of an OAuth login: the last one while valid, or a new one; empty without one."""
        if not login.refresh_token:
            return ""
        if login.access_token and login.access_token != self._expired_token and not _is_over(login.expires):
            return login.access_token
        self._session.auth = None
        oauth = KaggleCredentials(self._client, refresh_token=login.refresh_token)
        try:
            with self._errors("the login"):
                answer = oauth.generate_access_token()
        except (_NotAccepted, Problem):
            self._refuse(login)
            return ""
        token, expires = str(answer.token), datetime.now(UTC) + timedelta(seconds=answer.expires_in)
        self._hide([token])
        self._is_new_token = True
        _keep_access_token(login, token, expires)
        return token

    def _refuse_login(self) -> None:
        """Stop using the credentials that Kaggle has just refused; an expired OAuth token is renewed first."""
        login, self._login = self._login, None
        assert login is not None  # they were sent
        if login.refresh_token and not self._is_new_token:
            self._expired_token = self._token
        else:
            self._refuse(login)

    def _refuse(self, login: Credentials) -> None:
        self._refused.append(login)
        write_log(f"Kaggle does not accept the credentials in {login.source} (401)")

    def _hide(self, secrets: Iterable[str]) -> None:
        by_name = {str(number): secret for number, secret in enumerate(secrets)}
        self._redaction.learn(by_name, by_name)

    @contextmanager
    def _errors(self, competition_id: str) -> Iterator[None]:
        """Turn the errors of requests to Kaggle into problems without secrets in their texts.

        Raises:
            TemporaryFailure: it may work later.
            _NotAccepted: the credentials are not accepted.
            Problem: it won't work, and why.
        """
        try:
            yield
        except (Problem, TemporaryFailure, _NotAccepted):
            raise
        except requests.RequestException as error:
            # Without a cause, because the original contains the address, whose signature is a secret.
            raise self._without_secrets(_translated(error, competition_id)) from None
        except Exception as error:  # noqa: BLE001 - any error of the client may repeat what was sent
            why = f"{type(error).__name__}: {error}"
            raise self._without_secrets(
                KaggleFailure("Kaggle's client failed", why, subject=competition_id)
            ) from None

    def _without_secrets(self, error: Exception) -> Exception:
        if not isinstance(error, Problem):
            return error  # its text is our own
        return Problem.of(replace(error.record, why=self._redaction.clean(error.why)))


def _is_over(expires: str) -> bool:
    """Return whether an access token has expired, according to its file; False where the file does not say."""
    try:
        return bool(expires) and datetime.fromisoformat(expires) - _EXPIRES_SOON < datetime.now(UTC)
    except (ValueError, TypeError):  # not a time, or one without a zone
        return True


def _keep_access_token(login: Credentials, token: str, expires: datetime) -> None:
    """Save a new access token in the login's file, for later processes."""
    assert login.file is not None  # an OAuth login is always in a file
    try:
        values = json.loads(login.file.read_bytes())
        with replacing(login.file) as stream:
            Path(stream.name).chmod(0o600)
            renewed = {**values, "access_token": token, "access_token_expiration": expires.isoformat()}
            stream.write(json.dumps(renewed, indent=2).encode())
    except (OSError, ValueError) as error:
        write_log(f"the new access token can't be saved in {login.file}: {type(error).__name__}")


class _WithTimeout(HTTPAdapter):
    """Adds a timeout to every request of Kaggle's client, which has none and would wait for ever."""

    def send(self, request: Any, *arguments: Any, **settings: Any) -> Any:
        settings["timeout"] = TIMEOUTS
        return super().send(request, *arguments, **settings)


def _about(request: Any, competition_id: str) -> Any:
    request.competition_name = competition_id
    return request


class DataResponse:
    """A file being downloaded: its metadata and its bytes."""

    def __init__(
        self, response: requests.Response, errors: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._response = response
        self._errors = errors

    @property
    def size(self) -> int | None:
        """How many bytes the whole file has."""
        length = self._response.headers.get("Content-Length")
        return int(length) if length and length.isdigit() else None

    @property
    def identity(self) -> str | None:
        """A value that changes with the file (ETag or date); None where the server sends none."""
        headers = self._response.headers
        return headers.get("ETag") or headers.get("Last-Modified")

    @property
    def md5(self) -> str | None:
        """The file's MD5, as the storage reports it."""
        found = re.search(r"\bmd5=([A-Za-z0-9+/]{22}==)", self._response.headers.get("x-goog-hash", ""))
        return base64.b64decode(found[1]).hex() if found else None

    def chunks(self, start: int) -> Iterator[tuple[int, bytes]]:
        """Yield the file's bytes from `start` on, each piece with its offset; from 0 if the server has no ranges.

        Raises:
            TemporaryFailure: the connection was interrupted or timed out.
        """
        with self._errors(), closing(self._from(start)) as response:
            at = start if response.status_code == requests.codes.partial_content else 0
            for chunk in response.iter_content(_BLOCK):
                yield at, chunk
                at += len(chunk)

    def _from(self, start: int) -> requests.Response:
        """Request the file from `start` on, at the same address and with the same rights as the whole file."""
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


def _translated(
    error: requests.RequestException, competition_id: str
) -> Problem | TemporaryFailure | _NotAccepted:
    """Turn an error of a request into a problem, or into a failure worth retrying."""
    temporary = temporary_failure(error, "Kaggle")
    if temporary is not None:
        return temporary
    response = error.response
    assert response is not None  # without one it is temporary
    status = response.status_code
    if response.request.method == "GET":
        # Only requests to the storage are GETs; a retry gets a new address with a new signature.
        return TemporaryFailure(f"Kaggle's storage answered {status}")
    url = f"https://www.kaggle.com/c/{competition_id}"
    if status == 401:
        return _NotAccepted()
    if status == 403:
        return RulesNotAccepted(
            "Kaggle refuses the download",
            _message(response) or "it answered 403",
            f"Accept the rules at {url}/rules (on closed competitions through the tab Data), then try again.",
            subject=competition_id,
        )
    if status in (404, 410):
        return NotAvailable(
            "no longer available on Kaggle",
            f"it answered {status}",
            f"See {url}; with a copy of its data, put {competition_id}.zip into the dataset's folder.",
            subject=competition_id,
        )
    return KaggleFailure(
        f"Kaggle answered {status}", _message(response), "Try again later.", subject=competition_id
    )


def temporary_failure(error: requests.RequestException, host: str) -> TemporaryFailure | None:
    """Return the failure for an error that a retry may resolve; None for other errors."""
    response = error.response
    if response is None:
        return TemporaryFailure(_reason(error))
    if response.status_code not in _TEMPORARY:
        return None
    asked = seconds_asked(response.headers.get("Retry-After"))
    return TemporaryFailure(
        f"{host} answered {response.status_code}", None if asked is None else min(asked, LONGEST_ASKED)
    )


def _message(response: requests.Response) -> str:
    """Return the message of Kaggle's answer in one line; not the exception's text, which contains the address."""
    try:
        message = response.json().get("message", "")
    except (ValueError, AttributeError):
        return ""
    return " ".join(str(message).split())[:_MOST_CHARACTERS].rstrip(".")


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
