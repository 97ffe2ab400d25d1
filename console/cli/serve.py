"""`serve`: the same console in a browser on this machine, or through an SSH tunnel."""

from __future__ import annotations

import socket
from typing import Annotated
from urllib.parse import urlsplit

from typer import Option

from mlebench_console.console.cli.common import Context, TextCommand, new_app
from mlebench_console.console.cli.output import say
from mlebench_console.foundation.problems import EnvironmentProblem

app = new_app()


@app.command(cls=TextCommand)
def serve(
    context: Context,
    port: Annotated[
        int, Option(min=0, max=65535, metavar="PORT", help="The port to listen on; 0 takes a free one.")
    ] = 8765,
) -> None:
    """Show the console in a browser, on this machine only, at an address with a secret token."""
    try:
        from mlebench_console.console.app.serve import GuardedServer
        from mlebench_console.console.app.serve import serve as serve_until_ended
    except ImportError as error:
        raise EnvironmentProblem(
            "the console in a browser needs textual-serve",
            "it is not installed",
            "Install it beside this program: pip install 'mlebench-console[serve]'",
        ) from error
    invocation = context.invocation
    places, appearance = invocation.own_places, invocation.appearance
    arguments = [
        f"--state-dir={places.state_dir}",
        f"--data-dir={places.data_dir}",
        f"--config={places.config_file}",
    ]
    if appearance.screen:
        arguments.append(f"--screen={appearance.screen}")
    if appearance.theme:
        arguments.append(f"--theme={appearance.theme}")
    wanted = {"--readonly": appearance.readonly, "--demo": invocation.demo, "--ascii": appearance.ascii}
    arguments += [flag for flag, is_wanted in wanted.items() if is_wanted]
    serve_until_ended(GuardedServer(arguments, port=port), _announce)


def _announce(address: str) -> None:
    say(address)
    host, port = socket.gethostname(), urlsplit(address).port
    say("Anyone with this address can do everything that you can.")
    say(f"From another machine: ssh -L {port}:127.0.0.1:{port} {host}")
    say("Press Ctrl+C to stop; the engine keeps running.")
