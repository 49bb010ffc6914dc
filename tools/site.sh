#!/usr/bin/env bash
# The documentation as a site: build/site/html/index.html, to be read from the disk or put on any server.
#
#   tools/site.sh [PYTHON]     PYTHON has cresset installed (default: .venv/bin/python, else python3)
#
# MkDocs Material comes once into an environment of its own (.venv-site); after that nothing needs a network, and the pages
# ask for nothing from elsewhere. A broken link is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${1:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}"

tools="$(sed -n 's/^docs = \["\(.*\)"\].*$/\1/p' pyproject.toml)"
if [ "$(cat .venv-site/tools 2>/dev/null)" != "$tools" ]; then
  python3 -m venv .venv-site
  .venv-site/bin/pip install --quiet "$tools"
  echo "$tools" > .venv-site/tools
fi
rm -rf build/site
"$python" tools/site/pages.py build/site/docs
NO_MKDOCS_2_WARNING=1 .venv-site/bin/mkdocs build --strict --quiet --config-file build/site/mkdocs.yml
if grep -rlE '(src|<link[^>]* href)="https?:' build/site/html --include='*.html'; then
  echo "these pages ask for something from elsewhere" >&2
  exit 1
fi
echo "build/site/html/index.html"
