"""`images`: build, list and check the container images that runs need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from mlebench_console.console import wording
from mlebench_console.console.cli.common import Context, new_group
from mlebench_console.console.cli.output import say_on_stderr
from mlebench_console.engine.places import agents_folders, images_folder
from mlebench_console.foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    from mlebench_console.engine.images import Image
    from mlebench_console.environment.runner.protocol import ImageFile

app = new_group()

AgentsDir = Annotated[
    Path | None,
    Option(metavar="DIR", help="An agents folder in MLE-bench's format, searched before the built-in one."),
]


@app.command()
def build(
    context: Context,
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
) -> None:
    """Build images, in order, and print their digests."""
    from mlebench_console.console.actions.image import build_images
    from mlebench_console.engine.requests import BuildImages

    with context.engine() as places:
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
    _say_images(context, built)


@app.command()
def base(
    context: Context,
    name: Annotated[str, Argument(metavar="IMAGE", help="The name of the new image.")] = "mlebench-base",
) -> None:
    """Make a base image of this machine's own Debian or Ubuntu packages, as root, for hosts that reach no registry."""
    from mlebench_console.engine import images

    _say_images(context, [images.make_base(images.connect(), name, say_on_stderr)])
    say_on_stderr(f"build on it: mlebench-console images build --base-image {name}")


@app.command("list")
def list_(context: Context) -> None:
    """List the images built on this machine."""
    from mlebench_console.engine import images

    _say_images(context, images.list_images(images.connect()))


@app.command()
def check(
    context: Context,
    agent: Annotated[str, Argument(metavar="AGENT", help="The agent whose image is checked.")],
    agents_dir: AgentsDir = None,
    gpus: Annotated[int, Option(min=0, help="How many GPUs to expect inside.")] = 0,
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
    context.say_records(
        ("check", "result", "what was found"),
        results,
        lambda one: (one.name, "ok" if one.passed else "FAILED", one.detail),
    )
    if not all(result.passed for result in results):
        raise EnvironmentProblem(
            f"the image {found.image_name} can't hold runs",
            "a check failed",
            f"Correct its Dockerfile, then: {build_command([own.name], str(agents_dir or ''))}",
        )


@app.command("export")
def export_(
    context: Context,
    agent: Annotated[str, Argument(metavar="AGENT", help="The agent whose image it is.")],
    output: Annotated[
        Path | None,
        Option("--output", "-o", metavar="FILE", help="The file; where launches look for it if not given."),
    ] = None,
    agents_dir: AgentsDir = None,
) -> None:
    """Write an agent's image into one file, for hosts without Docker: --runtime auto, bubblewrap, apptainer."""
    from mlebench_console.engine import images
    from mlebench_console.engine.agents import get_agent

    found = get_agent(agent, agents_folders(str(agents_dir or "")))
    client = images.connect()
    own, _ = images.images_of_runs(found)
    images.require_needed(client, own, str(agents_dir or ""))
    folder = images_folder(context.places)
    _say_files(context, [images.export(client, own.name, folder, output)])


@app.command("import")
def import_(
    context: Context,
    file: Annotated[Path, Argument(metavar="FILE", help="An exported file; FILE.json must lie beside it.")],
) -> None:
    """Copy an image that was exported elsewhere to where launches look for it; its digest is checked."""
    from mlebench_console.engine import images

    _say_files(context, [images.import_image(file, images_folder(context.places))])


@app.command()
def files(context: Context) -> None:
    """List the images that were exported to or imported as a file."""
    from mlebench_console.engine import images

    _say_files(context, images.exported(images_folder(context.places)))


def _say_files(context: Context, found: list[ImageFile]) -> None:
    context.say_records(
        ("image", "sha256", "size", "file"),
        found,
        lambda one: (one.name, one.sha256[:12], wording.size(one.bytes), str(one.path)),
        right=("size",),
        nothing="no images are there as files; make one: mlebench-console images export AGENT",
    )


def _say_images(context: Context, found: list[Image]) -> None:
    context.say_records(
        ("image", "digest", "size", "created"),
        found,
        lambda one: (
            one.name,
            one.digest.removeprefix("sha256:")[:12],
            wording.size(one.bytes),
            one.created[:19],
        ),
        right=("size",),
        nothing="no images yet; build them: mlebench-console images build",
    )
