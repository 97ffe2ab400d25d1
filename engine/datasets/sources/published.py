"""Raw files that are not on Kaggle: download them from their publishers, unless they are in `raw/`."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from mlebench_console.competitions.model import Competition, PublishedFile
from mlebench_console.engine.datasets.steps import DownloadProgress
from mlebench_console.engine.downloads import Answer, TemporaryFailure, Wait, retrying
from mlebench_console.engine.layout import DatasetFolder
from mlebench_console.foundation.clock import SystemClock
from mlebench_console.foundation.problems import EnvironmentProblem
from mlebench_console.foundation.workers import ReportProgress

if TYPE_CHECKING:
    from mlebench_console.engine.kaggle.client import DataResponse


class SourceFailure(EnvironmentProblem):
    """A file of another publisher than Kaggle is not available at the moment."""

    code: ClassVar[str] = "source_failure"


def folders(competition: Competition, folder: DatasetFolder) -> tuple[Path, ...]:
    """Return the folders that may have such files of a competition."""
    return (folder.raw, folder.published) if competition.published else ()


def fetch(
    competition: Competition,
    folder: DatasetFolder,
    given: Path | None = None,
    *,
    keep_free: int,
    patience: float,
    report: ReportProgress,
) -> None:
    """Download the files that are neither in the competition's folder nor in a given one, packed or unpacked.

    Raises:
        SourceFailure: one is not available, after `patience` seconds if its server can't be reached.
        DiskFull: it does not fit.
    """
    places = [place for place in (given, *folders(competition, folder)) if place is not None]
    for file in competition.published:
        names = (file.name, Path(file.name).stem)
        if not any((place / name).exists() for place in places for name in names):
            _download(file, folder, keep_free=keep_free, patience=patience, report=report)


def _download(
    file: PublishedFile,
    folder: DatasetFolder,
    *,
    keep_free: int,
    patience: float,
    report: ReportProgress,
) -> None:
    from mlebench_console.engine.kaggle.download import download

    target = folder.published / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    progress = DownloadProgress(report, file.name)
    site = _Site(file, folder, patience, progress.wait)
    download(site, file.name, target, keep_free=keep_free, report=progress.bytes)
    if target.suffix == ".zip" and not zipfile.is_zipfile(target):
        target.unlink()
        raise site.problem("the downloaded file is not a zip")


class _Site:
    """The site that publishes a file."""

    def __init__(self, file: PublishedFile, folder: DatasetFolder, patience: float, wait: Wait) -> None:
        self._file = file
        self._folder = folder
        self._host = urlsplit(file.url).hostname or file.url
        self._patience = patience
        self._wait = wait

    @contextmanager
    def data(self, name: str, /) -> Iterator[DataResponse]:
        """Request the file once; `name` is not needed.

        Raises:
            TemporaryFailure: a retry may succeed.
            SourceFailure: a retry would not help now.
        """
        import requests

        from mlebench_console.engine.kaggle.client import TIMEOUTS, DataResponse

        del name
        headers = {"Accept-Encoding": "identity"}  # otherwise Content-Length would be of the compressed file
        with self._errors():
            answer = requests.get(self._file.url, headers=headers, stream=True, timeout=TIMEOUTS)
        with closing(DataResponse(answer, self._errors)) as response:
            with self._errors():
                answer.raise_for_status()
            yield response

    def retry(self, call: Callable[[], Answer], gained: Callable[[], int]) -> Answer:
        """Call until it succeeds, or the patience is over.

        Raises:
            SourceFailure: it has failed for too long.
        """
        try:
            return retrying(call, gained, patience=self._patience, wait=self._wait, clock=SystemClock())
        except TemporaryFailure as trouble:
            raise self.problem(trouble.why) from None

    def problem(self, why: str) -> SourceFailure:
        """Return the problem that the file is not available."""
        return SourceFailure(
            f"{self._file.name} can't be downloaded from {self._host}",
            why,
            f"Try again later, or get it from {self._file.url} and put it into {self._folder.raw}.",
        )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        import requests

        from mlebench_console.engine.kaggle.client import temporary_failure

        try:
            yield
        except requests.RequestException as error:
            failure = temporary_failure(error, self._host)
            if failure is not None:
                raise failure from None
            assert error.response is not None  # without one it is temporary
            raise self.problem(f"it answered {error.response.status_code}") from None
