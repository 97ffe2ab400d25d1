"""Folders of agents that ask of an image what MLE-bench's own do, with packages that take seconds and not hours."""

from __future__ import annotations

import bz2
import hashlib
import io
import json
import tarfile
from pathlib import Path

_FOLDERS = """\
ARG SUBMISSION_DIR
ENV SUBMISSION_DIR=${SUBMISSION_DIR}
ARG LOGS_DIR
ENV LOGS_DIR=${LOGS_DIR}
ARG CODE_DIR
ENV CODE_DIR=${CODE_DIR}
ARG AGENT_DIR
ENV AGENT_DIR=${AGENT_DIR}
"""
_PACKAGES = """\
ARG CONDA_ENV_NAME=agent
COPY requirements.txt ${AGENT_DIR}/requirements.txt
RUN conda run -n ${CONDA_ENV_NAME} pip install -r ${AGENT_DIR}/requirements.txt && \\
    conda clean -afy
"""
DUMMY = f"""\
FROM mlebench-env
{_FOLDERS}
RUN mkdir -p ${{LOGS_DIR}} ${{CODE_DIR}} ${{AGENT_DIR}}
{_PACKAGES}
COPY . ${{AGENT_DIR}}
"""
AIDE = f"""\
FROM mlebench-env
{_FOLDERS}
# without -p, as there
RUN mkdir ${{LOGS_DIR}} ${{CODE_DIR}} ${{AGENT_DIR}}
RUN apt-get update && apt-get install ffmpeg libsm6 libxext6 -y
{_PACKAGES}
COPY . ${{AGENT_DIR}}
"""
# The repository comes from a folder beside the Dockerfile, and not from GitHub.
MLAGENTBENCH = f"""\
FROM mlebench-env
{_FOLDERS}
RUN mkdir ${{LOGS_DIR}} ${{CODE_DIR}} ${{AGENT_DIR}}
{_PACKAGES}
COPY repository /tmp/repository
RUN cd /tmp/repository && git init --quiet && git add . \\
    && git -c user.name=a -c user.email=a commit --quiet --message all \\
    && git clone /tmp/repository ${{AGENT_DIR}}/Bench && cd ${{AGENT_DIR}}/Bench && git checkout HEAD
COPY additional_notes.txt /home/additional_notes.txt
COPY start.sh ${{AGENT_DIR}}
WORKDIR ${{AGENT_DIR}}/Bench
"""
REAL_MLAGENTBENCH = "mle-real-mlagentbench"
_REPOSITORY = "https://github.com/JunShern/MLAgentBench.git"
_REAL_MLAGENTBENCH = f"""\
FROM mlebench-env
{_FOLDERS}
RUN mkdir ${{LOGS_DIR}} ${{CODE_DIR}} ${{AGENT_DIR}}
RUN apt-get update && apt-get install ffmpeg libsm6 libxext6 -y
{_PACKAGES}
RUN git clone {_REPOSITORY} ${{AGENT_DIR}}/MLAgentBench
COPY start.sh ${{AGENT_DIR}}
"""
# What it asks for, old versions and packages that are compiled among them.
_REAL_PACKAGES = """
pillow torch==2.2.0 torchvision==0.17.0 transformers scikit-learn xgboost keras scipy numpy pandas
matplotlib seaborn tqdm kaggle opencv-python openai==0.28 anthropic langchain==0.2.10 langchain_anthropic
sentencepiece spacy nltk sacrebleu rouge-score peft accelerate evaluate tiktoken torch-geometric==2.3.1 ogb
networkx cchardet pytest dacite tenacity bson fastdtw textblob gdcm pylibjpeg geopy
"""
# It sets a platform, takes a package of conda, lets its agent use sudo, and brings an entry point of its own.
OPENDEVIN = f"""\
FROM --platform=linux/amd64 mlebench-env
{_FOLDERS}
ARG CONDA_ENV_NAME=agent
ENV DEBIAN_FRONTEND=noninteractive
RUN mkdir -p ${{LOGS_DIR}} ${{AGENT_DIR}} ${{CODE_DIR}} ${{SUBMISSION_DIR}}
WORKDIR ${{AGENT_DIR}}
COPY channel /tmp/channel
RUN conda install -y -n ${{CONDA_ENV_NAME}} -c file:///tmp/channel --override-channels tool=18.17.1 && \\
    conda run -n ${{CONDA_ENV_NAME}} pip install --upgrade packaging && \\
    conda clean -afy
COPY start.sh ${{AGENT_DIR}}/
COPY entrypoint.sh /agent_entrypoint.sh
RUN chmod +x /agent_entrypoint.sh
RUN echo "ALL ALL=NOPASSWD: ${{AGENT_DIR}}/build.sh" >> /etc/sudoers
ENTRYPOINT ["/agent_entrypoint.sh"]
"""
_BEGIN = 'set -ex\ncd ${AGENT_DIR}\neval "$(conda shell.bash hook)"\nconda activate agent\n'
_SUBMIT = "cp /home/data/sample_submission.csv ${SUBMISSION_DIR}/submission.csv\n"
# Notes are completed with variables, the instructions are changed in place, folders are linked into the agent's own.
_INSTRUCTIONS = """\
export TIME_LIMIT="1hrs" HARDWARE="a CPU"
sed -i 's|/home/||g' /home/instructions.txt
envsubst < NOTES >> /home/instructions.txt
cp /home/instructions.txt ${AGENT_DIR}/full_instructions.txt
mkdir -p ${AGENT_DIR}/workspaces/exp ${AGENT_DIR}/logs
ln -s ${CODE_DIR} ${AGENT_DIR}/workspaces/exp/best_solution
ln -s ${LOGS_DIR} ${AGENT_DIR}/logs/exp
tail -n 1 ${AGENT_DIR}/full_instructions.txt
"""
STARTS = {
    "mle-dummy": f"{_BEGIN}touch $CODE_DIR/code.py $LOGS_DIR/run.log $AGENT_DIR/was_here.txt\n{_SUBMIT}",
    "mle-aide": _BEGIN
    + _INSTRUCTIONS.replace("NOTES", "${AGENT_DIR}/additional_notes.txt")
    + 'for tool in 7z zip unzip ffmpeg vim nano tmux sudo; do command -v $tool; done\necho "args: $@"\n'
    + f"python -c 'import six'\n{_SUBMIT}",
    "mle-mlagentbench": _BEGIN.replace("cd ${AGENT_DIR}", "cd Bench")
    + _INSTRUCTIONS.replace("NOTES", "/home/additional_notes.txt")
    + f"python -m bench\n{_SUBMIT}",
    "mle-opendevin": "set -ex\n. /opt/conda/etc/profile.d/conda.sh\nconda activate agent\ntool\nconda deactivate\n"
    f"source activate agent\ntool\necho notes > /home/full_instructions.txt\n{_SUBMIT}",
}
CONFIG = """\
vars:
  step_count: &step_count 500
defaults: &defaults
  start: {name}/start.sh
  dockerfile: {name}/Dockerfile
  kwargs_type: omegaconf
{name}:
  <<: *defaults
  kwargs:
    agent.steps: *step_count
  env_vars:
    STEP_LIMIT: *step_count
"""


def write(agents: Path) -> list[str]:
    """Write all four, and return their names, which are no image's of ours."""
    dockerfiles = {
        "mle-dummy": DUMMY,
        "mle-aide": AIDE,
        "mle-mlagentbench": MLAGENTBENCH,
        "mle-opendevin": OPENDEVIN,
    }
    for name, dockerfile in dockerfiles.items():
        folder = agents / name
        folder.mkdir(parents=True)
        (folder / "Dockerfile").write_text(dockerfile)
        (folder / "start.sh").write_text(STARTS[name])
        (folder / "config.yaml").write_text(CONFIG.format(name=name))
        (folder / "requirements.txt").write_text("# packages\nsix\n" if "dummy" not in name else "# none\n")
        (folder / "additional_notes.txt").write_text("You have ${TIME_LIMIT} on ${HARDWARE}.\n")
    repository = agents / "mle-mlagentbench" / "repository"
    repository.mkdir()
    (repository / "bench.py").write_text("print('the bench runs')\n")
    opendevin = agents / "mle-opendevin"
    (opendevin / "entrypoint.sh").write_text("#!/bin/sh\nexit 9\n")
    write_conda_package(
        opendevin / "channel", "tool", "18.17.1", "bin/tool", "#!/bin/sh\necho the tool runs\n"
    )
    return list(dockerfiles)


def write_real_mlagentbench(agents: Path) -> None:
    """Write MLAgentBench with all that it really needs: gigabytes, and a repository from GitHub."""
    folder = agents / REAL_MLAGENTBENCH
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text(_REAL_MLAGENTBENCH)
    (folder / "requirements.txt").write_text("\n".join(_REAL_PACKAGES.split()))
    (folder / "start.sh").write_text("true\n")
    (folder / "config.yaml").write_text(CONFIG.format(name=REAL_MLAGENTBENCH))


def write_conda_package(channel: Path, name: str, version: str, path: str, content: str) -> None:
    """Write a package and the index of its channel, as conda's channels are."""
    data = content.encode()
    index = {
        "name": name,
        "version": version,
        "build": "0",
        "build_number": 0,
        "depends": [],
        "subdir": "linux-64",
    }
    entry = {"_path": path, "path_type": "hardlink", "sha256": _sha256(data), "size_in_bytes": len(data)}
    members = {
        path: data,
        "info/index.json": json.dumps(index).encode(),
        "info/paths.json": json.dumps({"paths": [entry], "paths_version": 1}).encode(),
        "info/files": f"{path}\n".encode(),
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for member, body in members.items():
            info = tarfile.TarInfo(member)
            info.size, info.mode = len(body), 0o755
            archive.addfile(info, io.BytesIO(body))
    package = bz2.compress(packed.getvalue())
    file = f"{name}-{version}-0.tar.bz2"
    listed = {file: {**index, "sha256": _sha256(package), "size": len(package)}}
    for subdir, packages in (("linux-64", listed), ("noarch", {})):
        (channel / subdir).mkdir(parents=True)
        told = {"info": {"subdir": subdir}, "packages": packages, "packages.conda": {}, "repodata_version": 1}
        (channel / subdir / "repodata.json").write_text(json.dumps(told))
    (channel / "linux-64" / file).write_bytes(package)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
