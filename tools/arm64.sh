#!/usr/bin/env bash
# The module for arm64, compiled on another processor, and the tests of its core run on it by qemu.
#
#   tools/arm64.sh [PYTEST ARGUMENT...]     names other tests than those of the core
#
# Needs Debian's g++-aarch64-linux-gnu and qemu-user, and a mirror of Debian for the Python that runs there. The Python that
# runs this (PYTHON, or python3) is of the same version, and has pip and nanobind. What is fetched and built stays in
# build/arm64, so that a second run builds only what changed.
set -euo pipefail
cd "$(dirname "$0")/.."

python="$(command -v "${PYTHON:-python3}")"
case "$python" in /*) ;; *) python="$PWD/$python" ;; esac
for program in aarch64-linux-gnu-g++ qemu-aarch64 apt-get dpkg-deb cmake ninja; do
  command -v "$program" > /dev/null || { echo "arm64: $program is not here" >&2; exit 1; }
done
version="$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
work="$PWD/build/arm64" tests=("$@")
if [ $# = 0 ]; then tests=(tests/test_smoke.py tests/autograd tests/tensor); fi

# ---- the other system: Python and its libraries, unpacked into a folder. apt has its own state there, and nobody is root.
if [ ! -x "$work/system/usr/bin/python$version" ]; then
  mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/system"
  touch "$work/apt/status"
  options=(-q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$work/apt"
    -o "Dir::State::status=$work/apt/status" -o "Dir::Cache=$work/apt/cache" -o APT::Install-Recommends=false
    -o Debug::NoLocking=true)
  apt-get "${options[@]}" update
  apt-get "${options[@]}" -y --download-only install "python$version" "libpython$version-dev" libstdc++6
  for package in "$work"/apt/cache/archives/*.deb; do dpkg-deb -x "$package" "$work/system"; done
fi
if [ ! -d "$work/packages/pytest" ]; then
  "$python" -m pip install --quiet --platform manylinux_2_28_aarch64 --platform manylinux2014_aarch64 --platform any \
    --only-binary=:all: --python-version "$version" --target "$work/packages" numpy pytest pytest-timeout scipy-openblas64
fi
# A program that starts another one by sys.executable cannot start one for arm64; it can start this.
printf '#!/bin/sh\nexec qemu-aarch64 -L "%s" "%s" "$@"\n' "$work/system" "$work/system/usr/bin/python$version" > "$work/python"
chmod +x "$work/python"
printf 'import sys\n\nsys.executable = "%s"\n' "$work/python" > "$work/packages/sitecustomize.py"

# ---- the module
cmake -S . -B "$work/module" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux \
  -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DPython_EXECUTABLE="$python" \
  -DPython_INCLUDE_DIR="$work/system/usr/include/python$version" \
  -DCMAKE_CXX_FLAGS="-isystem $work/system/usr/include" -DSKBUILD_PROJECT_VERSION=0.0.0 > "$work/configured.log"
ninja -C "$work/module"
rm -rf "$work/tree"
mkdir -p "$work/tree/src"
cp -r tests pyproject.toml docs examples tools README.md benchmarks native "$work/tree/"
cp -rL src/cresset "$work/tree/src/"
rm -f "$work"/tree/src/cresset/_native.*.so
cp "$work"/module/native/_native.*.so "$work/tree/src/cresset/_native.cpython-${version/./}-aarch64-linux-gnu.so"

cd "$work/tree"
PYTHONPATH="$work/tree/src:$work/packages" PYTHONDONTWRITEBYTECODE=1 \
  "$work/python" -m pytest -p no:cacheprovider "${tests[@]}"
