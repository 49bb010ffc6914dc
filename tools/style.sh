#!/usr/bin/env bash
# What is the same everywhere: ruff's rules and layout, clang-format's layout, mypy on the package.
#
#   tools/style.sh [--fix]     --fix puts right what can be put right by itself
#
# The tools come in the versions that pyproject.toml names, into an environment of their own (.venv-style).
set -euo pipefail
cd "$(dirname "$0")/.."

tools="$(sed -n 's/^dev = \[\(.*\)\]$/\1/p' pyproject.toml | tr -d '",' | tr ' ' '\n' | grep ==)"
if [ "$(cat .venv-style/tools 2>/dev/null)" != "$tools" ]; then
  python3 -m venv .venv-style
  .venv-style/bin/pip install --quiet $tools
  echo "$tools" > .venv-style/tools
fi
bin=.venv-style/bin
sources=()
while IFS= read -r file; do sources+=("$file"); done \
  < <(find native tests src \( -name '*.cpp' -o -name '*.h' -o -name '*.cuh' \) -type f -not -path '*/include/*' | sort)

if [ "${1:-}" = "--fix" ]; then
  $bin/ruff check --quiet --fix .
  $bin/ruff format --quiet .
  for _ in 1 2 3 4; do $bin/clang-format -i "${sources[@]}"; done  # comments move once more when their lines have
fi
$bin/ruff check --quiet .
$bin/ruff format --check --quiet . || { echo "style: 'tools/style.sh --fix' lays these out"; exit 1; }
$bin/clang-format --dry-run -Werror --ferror-limit=5 "${sources[@]}"
# mypy reads the sources: without the stubs that a build may have printed beside them.
bare="$(mktemp -d)"
trap 'rm -rf "$bare"' EXIT
find src -name '*.py' -print0 | tar --null --files-from=- --create | tar --extract --directory "$bare"
here="$PWD"
(cd "$bare" && "$here/$bin/mypy" --config-file "$here/pyproject.toml" --cache-dir "$here/.mypy_cache")
