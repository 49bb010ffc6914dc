#!/usr/bin/env bash
# Builds the native part with the address and undefined-behavior sanitizers and runs tests of the core on it. An error
# that either of them finds ends the process, and with it the run. The device of tests/tensor/fake_device is built in, so
# that what a device promises (tests/tensor/test_backend.py) is tested, too.
#
#   tools/sanitize.sh [--short] [PYTEST ARGUMENT...]     --short: the quick tests only, of code that is not optimized,
#                                                        since to compile it takes half the time
#
# PYTHON is an interpreter that has pytest (default: .venv/bin/python).
set -euo pipefail
cd "$(dirname "$0")/.."

python="${PYTHON:-.venv/bin/python}"
tests=(tests/test_smoke.py tests/tensor tests/autograd tests/ops) optimize=-O1
if [ "${1:-}" = "--short" ]; then
  shift
  optimize=-O0
  tests=(tests/test_smoke.py tests/tensor/test_backend.py)
fi
[ $# -gt 0 ] && tests=("$@")

if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

build="$PWD/build/sanitize"
"$python" -m pip install . --quiet --no-deps --upgrade --target "$build/site" \
  --config-settings=build-dir="$build/objects" \
  --config-settings=cmake.define.CRESSET_SANITIZE=ON \
  --config-settings=cmake.define.CRESSET_OPTIMIZE="$optimize" \
  --config-settings=cmake.define.CRESSET_DEVICES=tests/tensor/fake_device
export CRESSET_FAKE_DEVICE="$build/site"

# The interpreter itself is not built with the sanitizers: their libraries come first by LD_PRELOAD, and Python's own
# memory is taken from malloc so that they see it. A request for too much memory fails as it does without them. Leaks are
# not looked for: the interpreter keeps memory on purpose.
compiler="${CXX:-g++}"
export LD_PRELOAD="$("$compiler" -print-file-name=libasan.so):$("$compiler" -print-file-name=libubsan.so)"
export ASAN_OPTIONS="allocator_may_return_null=1:detect_leaks=0:abort_on_error=1:strict_string_checks=1:detect_stack_use_after_return=1"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1"
export PYTHONMALLOC=malloc PYTHONPATH="$build/site" PYTHONSAFEPATH=1 OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"

"$python" -c 'import cresset, sys; assert cresset.__file__.startswith(sys.argv[1]), cresset.__file__' "$build/site"
exec "$python" -m pytest -p no:cacheprovider "${tests[@]}"
