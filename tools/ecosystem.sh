#!/usr/bin/env bash
# Packages that say `import torch`, unmodified, on cresset: makes an environment, adopts cresset in it, installs the packages by
# name, and runs tests/ecosystem there.
#
#   tools/ecosystem.sh WHEEL [--long]     WHEEL is cresset's; --long runs every architecture and modeling file, and compares
#                                         with the PyTorch of the Python that PYTORCH names
set -euo pipefail
cd "$(dirname "$0")/.."

wheel="${1:?the wheel of cresset}" environment=.venv-ecosystem
rm -rf "$environment"
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet --no-compile "$wheel"
"$environment/bin/cresset" adopt
# torchvision has no version here: pip finds the one for the PyTorch that cresset stands in for.
"$environment/bin/pip" install --quiet --no-compile --requirement tests/ecosystem/requirements.txt
if "$environment/bin/pip" list --format=freeze | grep --ignore-case '^nvidia-\|^triton=' \
  || ! "$environment/bin/pip" list --format=freeze | grep --quiet '^torch==.*+cresset$'; then
  echo "ecosystem: PyTorch or a library of NVIDIA's was installed" >&2
  exit 1
fi
if [ "${2:-}" = "--long" ]; then export CRESSET_LONG=1; fi
export CRESSET_ECOSYSTEM=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
"$environment/bin/python" -m pytest --durations=5 tests/ecosystem
