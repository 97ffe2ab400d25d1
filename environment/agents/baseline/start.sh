#!/bin/bash
set -eu

eval "$(conda shell.bash hook)"
conda activate agent
# The data are small, and several runs share a host: threads that wait for each other made a run take
# thirty times as long on two busy cores.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS:-1}"
cd "${AGENT_DIR:-/home/agent}"
exec python -m solver
