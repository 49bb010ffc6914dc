"""Before any test: processes that tests start find the installed cresset, not the folder they are started in."""

import os

os.environ["PYTHONSAFEPATH"] = "1"
