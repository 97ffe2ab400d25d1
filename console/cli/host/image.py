"""`images`: build, list and check the container images that runs need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from mlebench_console.console import wording
from mlebench_console.console.cli.common import Json, new_group, places_of
from mlebench_console.console.cli.output import say_on_stderr, say_records
from mlebench_console.engine.places import agents_folders, images_folder
from mlebench_console.foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    from mlebench_console.engine.images import Image
    from mlebench_console.environment.runner.protocol import ImageFile

app = new_group("Build, list and check container images.")

AgentsDir = Annotated[
    Path | None,
    Option(metavar="DIR", help="An agents folder in MLE-bench's format, searched before the built-in one."),
]


@app.command()
def build(
    context: typer.Context,
    names: Annotated[
        list[str] | None, Argument(metavar="IMAGE...", help="The images to build; all if none is given.")
    ] = None,
    agents_dir: AgentsDir = None,
    base_image: Annotated[
        str, Option(metavar="IMAGE", help="The base image of mlebench-env and mlebench-grader.")
    ] = "",
    heavy: Annotated[bool, Option(help="Install the large machine learning packages as well.")] = False,
    certificates: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Certificates of a network that inspects TLS (SSL_CERT_FILE); never stored in an image.",
        ),
    ] = None,
    pip_configuration: Annotated[
        Path | None,
        Option(
            "--pip-config", metavar="FILE", help="A pip.conf (PIP_CONFIG_FILE); never stored in an image."
        ),
    ] = None,
    fresh: Annotated[bool, Option(help="Build without the cache of earlier builds.")] = False,
    json: Json = False,
) -> None:
    """Build images, in order, and print their digests."""
    from mlebench_console.console.actions.image import build_images
    from mlebench_console.console.cli.host.engine import engine_for
    from mlebench_console.engine.requests import BuildImages

    own = places_of(context)
    with engine_for(own, own.data_dir) as places:
        order = BuildImages(
            names=tuple(names or ()),
            agents_dir=str(agents_dir or ""),
            base_image=base_image,
            heavy=heavy,
            certificates=str(certificates or ""),
            pip_configuration=str(pip_configuration or ""),
            fresh=fresh,
        )
        built = build_images(places, order, say_on_stderr)
    _say_images(built, json=json)


@app.command()
def base(
    name: Annotated[str, Argument(metavar="IMAGE", help="The name of the new image.")] = "mlebench-base",
    json: Json = False,
) -> None:
    """Make a base image of this machine's own Debian or Ubuntu packages, as root, for hosts that reach no registry."""
    from mlebench_console.engine import images

    _say_images([images.make_base(images.connect(), name, say_on_stderr)], json=json)
    say_on_stderr(f"build on it: mlebench-console images build --base-image {name}")


@app.command("list")
def list_(json: Json = False) -> None:
    """List the images built on this machine."""
    from mlebench_console.engine import images

    _say_images(images.list_images(images.connect()), json=json)


@app.command()
def check(
    agent: Annotated[str, Argument(metavar="AGENT", help="The agent whose image is checked.")],
    agents_dir: AgentsDir = None,
    gpus: Annotated[int, Option(min=0, help="How many GPUs to expect inside.")] = 0,
    json: Json = False,
) -> None:
    """Check an agent's image from inside, as a run would use it: user, folders, Python, grader, GPUs."""
    from mlebench_console.engine import images
    from mlebench_console.engine.agents import get_agent
    from mlebench_console.environment.runner.docker.daemon import build_command
    from mlebench_console.environment.runner.host.readings import read_nvidia

    found = get_agent(agent, agents_folders(str(agents_dir or "")))
    devices = tuple(gpu.uuid for gpu in read_nvidia()[:gpus]) if gpus else ()
    if len(devices) < gpus:
        raise EnvironmentProblem(f"this host has no {gpus} GPUs", f"the driver shows {len(devices)}")
    client = images.connect()
    own, _ = images.images_of_runs(found)
    fault = own.fault(client)
    results = [
        images.CheckResult("files", not fault, fault or "those that it was built from"),
        *images.check(client, own.name, start=str(found.start_below_folder), gpu_uuids=devices),
    ]
    say_records(
        ("check", "result", "what was found"),
        results,
        lambda one: (one.name, "ok" if one.passed else "FAILED", one.detail),
        json=json,
    )
    if not all(result.passed for result in results):
        raise EnvironmentProblem(
            f"the image {found.image_name} can't hold runs",
            "a check failed",
            f"Correct its Dockerfile, then: {build_command([own.name], str(agents_dir or ''))}",
        )


@app.command("export")
def export_(
    context: typer.Context,
    agent: Annotated[str, Argument(metavar="AGENT", help="The agent whose image it is.")],
    output: Annotated[
        Path | None,
        Option("--output", "-o", metavar="FILE", help="The file; where launches look for it if not given."),
    ] = None,
    agents_dir: AgentsDir = None,
    json: Json = False,
) -> None:
    """Write an agent's image into one file, for hosts without Docker: --runtime auto, bubblewrap, apptainer."""
    from mlebench_console.engine import images
    from mlebench_console.engine.agents import get_agent

    found = get_agent(agent, agents_folders(str(agents_dir or "")))
    client = images.connect()
    own, _ = images.images_of_runs(found)
    images.require_needed(client, own, str(agents_dir or ""))
    folder = images_folder(places_of(context))
    _say_files([images.export(client, own.name, folder, output)], json=json)


@app.command("import")
def import_(
    context: typer.Context,
    file: Annotated[Path, Argument(metavar="FILE", help="An exported file; FILE.json must lie beside it.")],
    json: Json = False,
) -> None:
    """Copy an image that was exported elsewhere to where launches look for it; its digest is checked."""
    from mlebench_console.engine import images

    _say_files([images.import_image(file, images_folder(places_of(context)))], json=json)


@app.command()
def files(context: typer.Context, json: Json = False) -> None:
    """List the images that were exported to or imported as a file."""
    from mlebench_console.engine import images

    _say_files(images.exported(images_folder(places_of(context))), json=json)


def _say_files(found: list[ImageFile], *, json: bool) -> None:
    say_records(
        ("image", "sha256", "size", "file"),
        found,
        lambda one: (one.name, one.sha256[:12], wording.size(one.bytes), str(one.path)),
        json=json,
        right=("size",),
        nothing="no images are there as files; make one: mlebench-console images export AGENT",
    )


def _say_images(found: list[Image], *, json: bool) -> None:
    say_records(
        ("image", "digest", "size", "created"),
        found,
        lambda one: (
            one.name,
            one.digest.removeprefix("sha256:")[:12],
            wording.size(one.bytes),
            one.created[:19],
        ),
        json=json,
        right=("size",),
        nothing="no images yet; build them: mlebench-console images build",
    )
