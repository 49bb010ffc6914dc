#!/usr/bin/env bash
# The documentation as a site: build/site/html/index.html, to be read from the disk or put on any server.
#
#   tools/site.sh [PYTHON]     PYTHON has cresset installed (default: .venv/bin/python, else python3)
#
# MkDocs Material and what examples import come once into an environment of their own (.venv-site); after that nothing needs
# a network, and the pages ask for nothing from elsewhere. A broken link is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${1:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}"

tools="$("$python" -c 'import sys, tomllib
print(f"Python {sys.version_info[0]}.{sys.version_info[1]}", *tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")')"
if [ "$(cat .venv-site/tools 2>/dev/null)" != "$tools" ]; then
  "$python" -m venv --clear .venv-site
  tail -n +2 <<< "$tools" > .venv-site/requirements
  .venv-site/bin/pip install --quiet --requirement .venv-site/requirements
  echo "$tools" > .venv-site/tools
fi
rm -rf build/site
packages="$(.venv-site/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$packages" "$python" tools/site/pages.py build/site/docs
NO_MKDOCS_2_WARNING=1 .venv-site/bin/mkdocs build --strict --quiet --config-file build/site/mkdocs.yml
if grep -rlE '(src|<link[^>]* href)="https?:' build/site/html --include='*.html'; then
  echo "these pages ask for something from elsewhere" >&2
  exit 1
fi
echo "build/site/html/index.html"
