#!/usr/bin/env bash
# Packages that say `import torch`, unmodified, on cresset: makes an environment, adopts cresset in it, installs the packages by
# name, and runs tests/ecosystem there.
#
#   tools/ecosystem.sh WHEEL [--short|--long]   WHEEL is cresset's; --short takes the few packages whose breaking would be
#                                               noticed first; --long runs every architecture and modeling file, and compares
#                                               with the PyTorch of the Python that PYTORCH names
set -euo pipefail
cd "$(dirname "$0")/.."

wheel="${1:?the wheel of cresset}" form="${2:-}" environment=.venv-ecosystem
few=(einops lightning safetensors torchmetrics transformers)
requirements=tests/ecosystem/requirements.txt
rm -rf "$environment"
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet --no-compile "$wheel"
"$environment/bin/cresset" adopt

# torchvision has no version here: pip finds the one for the PyTorch that cresset stands in for.
packages=(--requirement "$requirements") chosen=(tests/ecosystem)
if [ "$form" = --short ]; then
  # The programs of the few also use a logger, a launcher, two processes and scikit-learn's numbers.
  more=(accelerate mpich pytest pytest-timeout pytest-xdist scikit-learn tensorboard)
  packages=(--constraint "$requirements" "${few[@]}" "${more[@]}")
  chosen=("${few[@]/#/tests/ecosystem/test_packages.py::test_the_package_runs[}")
  chosen=("${chosen[@]/%/]}")
fi
# A registry that does not answer is given up soon, and said so.
timeout 600 "$environment/bin/pip" install --quiet --no-compile --retries 2 --timeout 20 "${packages[@]}" || {
  echo "ecosystem: the packages could not be installed (see above); is the package registry reachable from here?" >&2
  exit 1
}
installed="$("$environment/bin/pip" list --format=freeze)"
if grep --ignore-case '^nvidia-\|^triton=' <<< "$installed" || ! grep --quiet '^torch==.*+cresset$' <<< "$installed"; then
  echo "ecosystem: PyTorch or a library of NVIDIA's was installed" >&2
  exit 1
fi
if [ "$form" = --long ]; then export CRESSET_LONG=1; fi
unset PYTHONDONTWRITEBYTECODE  # a program's second process need not compile the packages again
export CRESSET_ECOSYSTEM=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
"$environment/bin/python" -m pytest -n 2 --durations=5 "${chosen[@]}"
