"""A relay from a TCP port on localhost to a Unix socket, for a sandbox without network.

    python relay.py --socket PATH [--port 5000] [-- COMMAND...]

With a command the port is opened first and served by a child process, and this process then becomes the command.
One file of standard library only, because it runs inside the sandbox. It looks at nothing that passes.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

MAX_CONNECTIONS = 16
_PR_SET_PDEATHSIG = 1
_CHUNK = 1 << 16


def listen(port: int) -> socket.socket:
    """Listen on localhost; connections wait from now on."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(MAX_CONNECTIONS)
    return listener


def serve(listener: socket.socket, answer: Callable[[socket.socket], None], most: int) -> None:
    """Answer each connection on its own thread, for ever; beyond `most` at a time they wait."""
    free = threading.Semaphore(most)

    def answer_one(client: socket.socket) -> None:
        try:
            with client:
                answer(client)
        finally:
            free.release()

    while True:
        free.acquire()
        client, _ = listener.accept()
        threading.Thread(target=answer_one, args=(client,), daemon=True).start()


def carry_both_ways(client: socket.socket, server: socket.socket) -> None:
    """Copy what either side sends to the other, until the server's answer is complete."""
    forth = threading.Thread(target=_carry, args=(client, server), daemon=True)
    forth.start()
    _carry(server, client)
    # A client that still sends is not listened to any longer.
    _shut(client, socket.SHUT_RDWR)
    forth.join()


def _carry(source: socket.socket, sink: socket.socket) -> None:
    """Copy until one side ends; a broken connection is an end like any other."""
    try:
        while data := source.recv(_CHUNK):
            sink.sendall(data)
    except OSError:
        _shut(source, socket.SHUT_RD)
    _shut(sink, socket.SHUT_WR)


def _shut(end: socket.socket, how: int) -> None:
    with suppress(OSError):  # it is closed already, which is what was wanted
        end.shutdown(how)


def _relay(listener: socket.socket, target: Path) -> None:
    def answer(client: socket.socket) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
            try:
                server.connect(str(target))
            except OSError as error:
                sys.stderr.write(f"relay: {target}: {error.strerror}\n")
            else:
                carry_both_ways(client, server)

    serve(listener, answer, MAX_CONNECTIONS)


def _serve_beside(listener: socket.socket, target: Path) -> None:
    """Serve in a child that dies with the command."""
    parent = os.getpid()
    if os.fork():
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == parent:
        _relay(listener, target)
    os._exit(0)


def main() -> int:
    """Listen, then serve or become the command."""
    parser = argparse.ArgumentParser(prog="relay", description="Relay localhost to a Unix socket.")
    parser.add_argument("--socket", type=Path, required=True, help="where the server listens")
    parser.add_argument("--port", type=int, default=5000, help="port on localhost")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="after --")
    options = parser.parse_args()
    try:
        listener = listen(options.port)
    except OSError as error:
        sys.stderr.write(f"relay: port {options.port}: {error.strerror}\n")
        return 1
    if not options.command:
        _relay(listener, options.socket)
    _serve_beside(listener, options.socket)
    listener.close()
    try:
        os.execvp(options.command[0], options.command)  # noqa: S606 - becoming the command is the purpose
    except OSError as error:
        sys.stderr.write(f"relay: {options.command[0]}: {error.strerror}\n")
        return 127


if __name__ == "__main__":
    sys.exit(main())
