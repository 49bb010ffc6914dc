"""What `importlib.metadata` says about the packages that cresset stands in for, where no distribution is installed that
says it.
"""

import importlib.metadata
import os
from email.message import Message

from . import PACKAGE, PLACES, VERSIONS, is_installed, is_there


class StandInDistribution(importlib.metadata.Distribution):
    """A package that cresset stands in for."""

    def __init__(self, name):
        self.title = name

    @property
    def metadata(self):
        message = Message()
        message["Metadata-Version"] = "2.1"
        message["Name"] = self.title
        message["Version"] = VERSIONS[self.title]
        message["Summary"] = "cresset in the place of " + self.title
        return message

    @property
    def name(self):
        return self.title

    @property
    def version(self):
        return VERSIONS[self.title]

    def read_text(self, filename):
        return self.metadata.as_string() if filename in ("METADATA", "PKG-INFO") else None

    def locate_file(self, path):
        return os.path.join(PACKAGE, path)


def find(context, but=()):
    """The distributions of this name that are stood in for, all if none is named, except those in `but`."""
    name = getattr(context, "name", None)
    for title in VERSIONS if name is None else [name.lower()]:
        stands_in = title == "torch" or (title in VERSIONS and not is_installed(title))
        if stands_in and title not in but and is_there(PLACES[title]):
            yield StandInDistribution(title)
