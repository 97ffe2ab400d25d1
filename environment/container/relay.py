"""A relay from TCP ports on localhost to Unix sockets, for a sandbox without network.

    python relay.py --to PORT:SOCKET [--to PORT:SOCKET...] [--ready SOCKET] [-- COMMAND...]

With a command the ports are opened first and served by a child process, and this process then becomes the command.
Before that it connects to the socket of --ready, to signal that the sandbox was set up. It is a single file that needs
only the standard library, because it runs inside the sandbox. Traffic is not inspected.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import os
import resource
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

# Each needs two open files and no thread: the relay shares the agent's limits of both.
MAX_CONNECTIONS = 512
_OPEN_FILES = 4 * MAX_CONNECTIONS
_PR_SET_PDEATHSIG = 1
_CHUNK = 1 << 16
_LINGER_SECONDS = 2.0
_NO_MORE_FILES_SECONDS = 0.2


class Connection(NamedTuple):
    """The streams of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


def listen(port: int) -> socket.socket:
    """Return a socket that listens on localhost."""
    # The protocol is named because asyncio sends small parts at once (TCP_NODELAY) only where it is; otherwise answers
    # in several parts wait 40 ms for the client's acknowledgement.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(MAX_CONNECTIONS)
    return listener


async def serve(listener: socket.socket, answer: Callable[[Connection], Awaitable[None]]) -> None:
    """Answer connections forever, at most MAX_CONNECTIONS at a time; further ones wait."""
    _allow_open_files()
    free = asyncio.Semaphore(MAX_CONNECTIONS)
    answering = set()
    listener.setblocking(False)

    async def answer_one(client: socket.socket) -> None:
        try:
            connection = Connection(*await asyncio.open_connection(sock=client, limit=_CHUNK))
            try:
                await answer(connection)
            finally:
                connection.writer.close()
        except OSError as error:
            sys.stderr.write(f"a connection broke: {error}\n")
        finally:
            free.release()

    while True:
        await free.acquire()
        try:
            client, _ = await asyncio.get_running_loop().sock_accept(listener)
        except OSError as error:
            sys.stderr.write(f"a connection can't be accepted: {error}\n")
            free.release()
            await asyncio.sleep(_NO_MORE_FILES_SECONDS)
            continue
        task = asyncio.ensure_future(answer_one(client))
        answering.add(task)  # the event loop keeps only weak references
        task.add_done_callback(answering.discard)


async def both_ways(forth: Awaitable[None], back: Awaitable[None]) -> None:
    """Run both until `back` is complete; an exception of `forth` ends both."""
    going, coming = asyncio.ensure_future(forth), asyncio.ensure_future(back)
    try:
        await asyncio.wait({going, coming}, return_when=asyncio.FIRST_COMPLETED)
        if not coming.done():
            await going
        await coming
        # A client that still sends would lose the answer if the connection were closed at once.
        await asyncio.wait({going}, timeout=_LINGER_SECONDS)
    finally:
        for task in (going, coming):
            task.cancel()
        await asyncio.gather(going, coming, return_exceptions=True)


async def carry(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, count: Callable[[int], None] | None = None
) -> None:
    """Copy until one side ends, passing the number of bytes to `count`; a broken connection counts as an end."""
    with suppress(OSError):
        while data := await source.read(_CHUNK):
            sink.write(data)
            if count is not None:
                count(len(data))
            await sink.drain()
    with suppress(OSError):  # it may be closed already
        sink.write_eof()


def _allow_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _answer_from(target: Path) -> Callable[[Connection], Awaitable[None]]:
    async def answer(client: Connection) -> None:
        try:
            server = Connection(*await asyncio.open_unix_connection(str(target), limit=_CHUNK))
        except OSError as error:
            sys.stderr.write(f"relay: {target}: {error.strerror}\n")
            return
        try:
            await both_ways(carry(client.reader, server.writer), carry(server.reader, client.writer))
        finally:
            server.writer.close()

    return answer


def _relay(targets: Mapping[socket.socket, Path]) -> None:
    async def serve_all() -> None:
        await asyncio.gather(*(serve(listener, _answer_from(to)) for listener, to in targets.items()))

    asyncio.run(serve_all())


def _serve_beside(targets: Mapping[socket.socket, Path]) -> None:
    """Serve in a child that dies with the command."""
    parent = os.getpid()
    if os.fork():
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == parent:
        _relay(targets)
    os._exit(0)


def _parse_target(text: str) -> tuple[int, Path]:
    port, _, path = text.partition(":")
    return int(port), Path(path)


def main() -> int:
    """Listen, then serve or become the command."""
    parser = argparse.ArgumentParser(prog="relay", description="Relay localhost to Unix sockets.")
    parser.add_argument(
        "--to",
        type=_parse_target,
        action="append",
        required=True,
        metavar="PORT:SOCKET",
        help="port on localhost, and the socket of its server",
    )
    parser.add_argument("--ready", metavar="SOCKET", help="socket to connect to before becoming the command")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="after --")
    options = parser.parse_args()
    if options.ready:
        with socket.socket(socket.AF_UNIX) as ready:
            ready.connect(options.ready)
    targets = {}
    for port, path in options.to:
        try:
            targets[listen(port)] = path
        except OSError as error:
            sys.stderr.write(f"relay: port {port}: {error.strerror}\n")
            return 1
    if not options.command:
        _relay(targets)
    _serve_beside(targets)
    for listener in targets:
        listener.close()
    try:
        os.execvp(options.command[0], options.command)  # noqa: S606 - becoming the command is the purpose
    except OSError as error:
        sys.stderr.write(f"relay: {options.command[0]}: {error.strerror}\n")
        return 127


if __name__ == "__main__":
    sys.exit(main())
