"""The stores of mirrors: a folder, a web server, a tar archive or S3, whose files are read by their paths.

Writing differs for each kind: folders and archives are written in `mirrors`, S3 by `Bucket`.
"""

from __future__ import annotations

import io
import os
import tarfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, urlsplit

from mlebench_console.engine.downloads import TemporaryFailure
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem, UsageProblem

if TYPE_CHECKING:
    import requests

_BLOCK = 1 << 18
_MOST_WHOLE = 1 << 30  # the largest index or manifest, which is read into memory
_TIMEOUTS = (30.0, 60.0)
_MISSING = frozenset({403, 404, 410})
_HOST_SECONDS = 2.0  # for the metadata service of a virtual machine, which answers quickly or does not exist
_AWS = "https://s3.amazonaws.com"
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_NO_SUCH = frozenset({"NoSuchKey", "NoSuchBucket"})
_NO_ACCESS = frozenset(
    {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidBucketName"}
)


class Store(Protocol):
    """A store from which files can be read."""

    name: str

    def chunks(self, path: str, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield a file's bytes from `start` on, each piece with its offset; from 0 if the store has no ranges.

        Raises:
            DataProblem: there is no such file.
            TemporaryFailure: a retry may succeed.
        """


def read_whole(store: Store, path: str) -> bytes:
    """Read a small file.

    Raises:
        DataProblem: there is no such file, or it is not small.
        EnvironmentProblem: the store can't be reached.
    """
    found = bytearray()
    try:
        for _, chunk in store.chunks(path):
            found += chunk
            if len(found) > _MOST_WHOLE:
                raise DataProblem(f"{store.name}/{path} is too large", f"more than {_MOST_WHOLE:,} bytes")
    except TemporaryFailure as cut:
        raise unreachable(store, cut) from None
    return bytes(found)


def unreachable(store: Store, cut: TemporaryFailure) -> EnvironmentProblem:
    """Return the problem of a store that can't be read now."""
    return EnvironmentProblem(
        f"{store.name} can't be read", cut.why, "Run the same command again to continue from here."
    )


def store_at(place: str) -> Store:
    """Return the store of a place: `http(s)://...`, `s3://bucket/prefix`, a folder or a tar archive.

    Raises:
        UsageProblem: it is none of these.
    """
    scheme = urlsplit(place).scheme
    if scheme in ("http", "https"):
        return Web(place)
    if scheme == "s3":
        return Bucket(place)
    path = Path(place).expanduser().absolute()
    if path.is_dir():
        return Folder(path)
    if path.is_file() and tarfile.is_tarfile(path):
        return Archive(path)
    raise UsageProblem(
        f"{place} is not a mirror",
        "there is neither a folder nor a tar archive",
        "Give a folder, a .tar file, http(s)://... or s3://BUCKET/PREFIX.",
    )


class Folder:
    """A folder, such as a mirror on a shared disk or a data directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.name = str(root)

    def chunks(self, path: str, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield a file's bytes from `start` on; see `Store`."""
        try:
            with (self.root / path).open("rb", buffering=0) as stream:
                yield from _pieces(stream, start, start)
        except OSError as error:
            raise _no_file(self, path, error.strerror or str(error)) from error


class Archive:
    """A tar archive; its files are read in place."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = str(path)

    def chunks(self, path: str, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield a file's bytes from `start` on; see `Store`."""
        if path not in self._members:
            raise _no_file(self, path, "it has no such file")
        offset, left = self._members[path]
        left -= start
        with self._path.open("rb", buffering=0) as stream:
            for at, piece in _pieces(stream, offset + start, start):
                yield at, piece[:left]
                left -= len(piece)
                if left <= 0:
                    return

    @cached_property
    def _members(self) -> dict[str, tuple[int, int]]:
        try:
            with tarfile.open(self._path, "r:") as archive:
                return {one.name: (one.offset_data, one.size) for one in archive if one.isreg()}
        except tarfile.TarError as error:
            raise DataProblem(
                f"{self._path} can't be read", str(error), "Give a tar archive without compression."
            ) from error


class Web:
    """A folder served by a web server."""

    def __init__(self, url: str) -> None:
        """Check the address, without sending a request.

        Raises:
            UsageProblem: it has a part that may be a secret, which would be shown and stored.
        """
        parts = urlsplit(url)
        if parts.username or parts.password or parts.query or parts.fragment:
            raise UsageProblem(
                "the address of a mirror can't have a password, query or fragment",
                "addresses are shown and stored",
                "Put user and password into ~/.netrc.",
            )
        self.name = url.rstrip("/")
        self._local = threading.local()

    def chunks(self, path: str, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield a file's bytes from `start` on; see `Store`."""
        import requests

        # Without compression, because a compressed transfer can't be continued in the middle.
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        try:
            answer = self._session.get(
                f"{self.name}/{quote(path)}", headers=headers, timeout=_TIMEOUTS, stream=True
            )
            with closing(answer):
                if answer.status_code == requests.codes.requested_range_not_satisfiable:
                    return
                if answer.status_code in _MISSING or answer.status_code == requests.codes.unauthorized:
                    raise _no_file(self, path, f"the server answered {answer.status_code}")
                if not answer.ok:
                    raise TemporaryFailure(f"the server answered {answer.status_code}")
                at = start if answer.status_code == requests.codes.partial_content else 0
                for chunk in answer.iter_content(_BLOCK):
                    yield at, chunk
                    at += len(chunk)
        except requests.RequestException as error:
            # Without its text, which is a chain of addresses.
            raise TemporaryFailure(f"the connection failed ({type(error).__name__})") from None

    @property
    def _session(self) -> requests.Session:
        import requests

        if not hasattr(self._local, "session"):
            self._local.session = requests.Session()
        session: requests.Session = self._local.session
        return session


class Bucket:
    """A prefix of a bucket in S3, or in a store with S3's protocol."""

    def __init__(self, place: str) -> None:
        """Create it for `s3://bucket/prefix`, with server and credentials from AWS's variables, profiles, or EC2.

        Raises:
            UsageProblem: there is no bucket in it.
            EnvironmentProblem: the extra is not installed.
        """
        parts = urlsplit(place)
        if not parts.netloc or "@" in parts.netloc or parts.query or parts.fragment:
            raise UsageProblem("the address has no valid bucket", "", "Give s3://BUCKET/PREFIX.")
        self.name = place.rstrip("/")
        self._bucket = parts.netloc
        prefix = parts.path.strip("/")
        self._prefix = f"{prefix}/" if prefix else ""
        try:
            from minio import Minio
            from minio.credentials import providers
        except ImportError as error:
            raise EnvironmentProblem(
                "S3 can't be used",
                "its client is not installed",
                "Install it: pip install 'mlebench-console[s3]'",
            ) from error
        import urllib3

        found = (os.environ.get(name) for name in _ENDPOINTS)
        server = urlsplit(next((one for one in found if one), _AWS))
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        timeout = urllib3.Timeout(*_TIMEOUTS)
        quick = urllib3.PoolManager(timeout=urllib3.Timeout(_HOST_SECONDS), retries=False)
        credentials = providers.ChainedProvider(
            [
                providers.EnvAWSProvider(),
                providers.AWSConfigProvider(),
                providers.IamAwsProvider(http_client=quick),
            ]
        )
        try:
            credentials.retrieve()
        except (ValueError, urllib3.exceptions.HTTPError):
            raise self._unusable("no AWS credentials were found") from None
        self._client = Minio(
            server.netloc,
            secure=server.scheme != "http",
            region=region,
            credentials=credentials,
            http_client=urllib3.PoolManager(
                timeout=timeout, retries=urllib3.Retry(2, backoff_factor=0.2), maxsize=16
            ),
        )

    def chunks(self, path: str, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield a file's bytes from `start` on; see `Store`."""
        with self._explained(path):
            answer = self._client.get_object(self._bucket, self._prefix + path, offset=start)
            try:
                at = start
                for chunk in answer.stream(_BLOCK):
                    yield at, chunk
                    at += len(chunk)
            finally:
                answer.close()

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the sizes of the files in a folder tree, by their paths in it."""
        before = f"{self._prefix}{folder}/"
        with self._explained(folder):
            found = self._client.list_objects(self._bucket, before, recursive=True)
            return {one.object_name.removeprefix(before): one.size for one in found}

    def has(self, path: str) -> bool:
        """Return whether there is such a file."""
        with self._explained(path):
            found = self._client.list_objects(self._bucket, self._prefix + path)
            return any(one.object_name == self._prefix + path for one in found)

    def upload(self, path: str, source: Path) -> None:
        """Write a file, which appears in one step; a large one is sent in several parts."""
        with self._explained(path):
            self._client.fput_object(self._bucket, self._prefix + path, str(source))

    def write(self, path: str, content: bytes) -> None:
        """Write a small file."""
        with self._explained(path):
            self._client.put_object(self._bucket, self._prefix + path, io.BytesIO(content), len(content))

    def remove(self, path: str) -> None:
        """Remove a file."""
        with self._explained(path):
            self._client.remove_object(self._bucket, self._prefix + path)

    @contextmanager
    def _explained(self, path: str) -> Iterator[None]:
        """Turn the client's errors into problems by their codes, because their texts may contain requests."""
        from minio.error import MinioException, S3Error
        from urllib3.exceptions import HTTPError

        try:
            yield
        except S3Error as error:
            code = error.code or "an error without a code"
            if code in _NO_SUCH:
                raise _no_file(self, path, f"S3 answered {code}") from None
            if code in _NO_ACCESS:
                raise self._unusable(f"S3 answered {code}") from None
            raise TemporaryFailure(f"S3 answered {code}") from None
        except (MinioException, HTTPError) as error:
            raise TemporaryFailure(f"S3 can't be reached ({type(error).__name__})") from None

    def _unusable(self, why: str) -> EnvironmentProblem:
        return EnvironmentProblem(
            f"{self.name} can't be used",
            why,
            "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, and AWS_ENDPOINT_URL if it is not AWS's.",
        )


def _pieces(stream: Any, offset: int, at: int) -> Iterator[tuple[int, bytes]]:
    stream.seek(offset, os.SEEK_SET)
    while piece := stream.read(_BLOCK):
        yield at, piece
        at += len(piece)


def _no_file(store: Store, path: str, why: str) -> DataProblem:
    return DataProblem(f"{store.name}/{path} can't be read", why)
