"""Print src/cresset/ops/aten_tags.txt from PyTorch's registry: for each tag, the overloads of aten_schemas.txt with it.
pt2_compliant_tag, which all operators have, is left out.

    python tools/aten_tags.py > src/cresset/ops/aten_tags.txt
"""

from pathlib import Path

import torch

TABLE = Path(__file__).resolve().parents[1] / "src" / "cresset" / "ops" / "aten_schemas.txt"

tagged = {}
for line in TABLE.read_text().splitlines():
    space, _, name = line.partition("(")[0].partition("::")
    if space == "aten":
        packet, _, overload = name.partition(".")
        for tag in getattr(getattr(torch.ops.aten, packet), overload or "default").tags:
            tagged.setdefault(tag.name, []).append(name)
del tagged["pt2_compliant_tag"]
for tag, names in sorted(tagged.items()):
    print(tag, *names)
