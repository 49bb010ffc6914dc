"""PyTorch's place for streams that close themselves, and for files by their names."""

from .....data.pipes.each import check_takes as validate_input_col  # noqa: F401
from .....data.pipes.files import (  # noqa: F401
    StreamWrapper,
    get_file_binaries_from_pathnames,
    get_file_pathnames_from_root,
    match_masks,
)
