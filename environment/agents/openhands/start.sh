#!/bin/bash
set -eu

# No list of prices is fetched at the start: the network may lead to the model alone.
export LITELLM_LOCAL_MODEL_COST_MAP=True OPENHANDS_SUPPRESS_BANNER=1
eval "$(conda shell.bash hook)"
# The driver runs in OpenHands' own environment; what it has its terminal do runs in the agent's.
driver="${OPENHANDS_PYTHON:-/opt/conda/envs/openhands/bin/python}"
conda activate agent
cd "${AGENT_DIR:-/home/agent}"
exec "$driver" drive.py "$@"
