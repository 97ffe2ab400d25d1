"""Kaggle's own client, driven for what this project needs; its answers and errors leave here in our words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeVar

from engine.kaggle.credentials import NO_CREDENTIALS_STEP, Credentials, find_credentials
from engine.kaggle.delivery import Delivery
from engine.kaggle.patience import Patience, Wait, insist, sleep
from engine.kaggle.problems import NoCredentials
from engine.kaggle.timeouts import limit_silence
from engine.kaggle.understanding import in_our_words

_FILES_A_PAGE = _ROWS_A_PAGE = 200

Result = TypeVar("Result")


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


class Kaggle:
    """Kaggle, signed in; a context manager."""

    def __init__(
        self,
        credentials: Credentials | None = None,
        *,
        patience: Patience | None = None,
        wait: Wait = sleep,
    ) -> None:
        """Prepare; nothing is asked yet.

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
        self.patience = patience or Patience()
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
        limit_silence(self._client)
        if found.oauth:
            token = self._insist(lambda: _oauth_token(self._client), "the login")
            self._client.__exit__(None, None, None)
            self._client = KaggleClient(api_token=token)
            self._client.__enter__()
            limit_silence(self._client)
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
        answer = self._insist(lambda: self._api.list_competition_pages(request), competition_id)
        return tuple(Page(page.name, page.content) for page in answer.pages or ())

    @contextmanager
    def data(self, competition_id: str) -> Iterator[Delivery]:
        """Have a competition's whole data delivered, once; `download` is what tries again.

        Raises:
            Passing: it may work later.
            BadCredentials: Kaggle does not know who asks.
            RulesNotAccepted: somebody must accept the rules first.
            NotAvailable: the competition is gone.
        """
        from kagglesdk.competitions.types.competition_api_service import ApiDownloadDataFilesRequest

        request = ApiDownloadDataFilesRequest()
        request.competition_name = competition_id
        delivery = Delivery(
            in_our_words(lambda: self._api.download_data_files(request), competition_id), competition_id
        )
        try:
            yield delivery
        finally:
            delivery.close()

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
        answer = self._insist(lambda: self._api.get_competition(request), competition_id)
        return answer.team_count or None

    def data_size(self, competition_id: str) -> int | None:
        """Find out whether a competition's data may be downloaded and how large they are.

        The download itself is asked for and let go of: only it tells whether the rules are accepted.
        """

        def look() -> int | None:
            with self.data(competition_id) as delivery:
                return delivery.size

        return insist(look, self.patience, wait=self.wait, progressed=lambda: False)

    @property
    def _api(self) -> Any:
        return self._client.competitions.competition_api_client

    def _paged(self, ask: Callable[[Any], Any], request: Any, competition_id: str) -> Iterator[Any]:
        """All answers to a request that is answered in pages."""
        while True:
            answer = self._insist(partial(ask, request), competition_id)
            yield answer
            if not answer.next_page_token:
                return
            request.page_token = answer.next_page_token

    def _insist(self, call: Callable[[], Result], competition_id: str) -> Result:
        return insist(
            lambda: in_our_words(call, competition_id),
            self.patience,
            wait=self.wait,
            progressed=lambda: False,
        )


def _oauth_token(client: Any) -> str:
    from kagglesdk.kaggle_creds import KaggleCredentials

    token: str = KaggleCredentials.load(client).get_access_token()
    return token
