"""Found on the path of processes that a program under `cresset run` starts: puts cresset in the place of torch."""

from cresset import standing_in

standing_in.install()
