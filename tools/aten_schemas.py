"""Print src/cresset/ops/aten_schemas.txt from PyTorch's registry: what programs in TorchScript's files and exported
programs call.

Left out are forms with out=, backward operators, those of other backends, and operators on tensors that nothing here
runs.

    python tools/aten_schemas.py > src/cresset/ops/aten_schemas.txt
"""

import re

import torch

from cresset.ops import aten_table

SKIPPED = re.compile(
    r"_foreach_|_fused_|cudnn|miopen|mkldnn|_mps|mps_|_test_|_nested_|_sparse_|sparse_resize|fbgemm|quantized_|_cslt|_triton|_flash|_efficient|_philox"
    r"|.*_backward|.*_backward_|.*backward_data|.*_jvp$|.*_for_mps$"
)
KEPT = {"_sparse_addmm"}
# In branches of PyTorch's own functions; nothing here runs them.
NAMED = {
    "_upsample_lanczos2d_aa",
    "_nested_tensor_from_mask",
    "_nested_tensor_from_mask_left_aligned",
    "to_padded_tensor",
}


def wanted(schema):
    space, _, name = schema.name.partition("::")
    text = str(schema)
    if (
        space not in ("aten", "prim")
        or "Dimname" in text
        or "out" in schema.overload_name.split("_")
        or schema.overload_name.endswith("out")
        and not schema.overload_name.endswith("layout")
    ):
        return False
    if (SKIPPED.match(name) and name not in KEPT | NAMED) or any(argument.is_out for argument in schema.arguments):
        return False
    of_tensors = re.search(r"\bTensor", text.partition("(")[2]) and not re.search(
        r"\bt\b|Dict\(|Tensor\[\] (self|a|l)\b", text
    )
    scalar = all(not re.match(r"Tensor", str(a.type)) for a in schema.returns)
    return space == "prim" or not of_tensors or scalar or name in NAMED or aten_table.function(name) is not None


for schema in torch._C._jit_get_all_schemas():
    if wanted(schema):
        print(re.sub(r"\bSymInt\b", "int", str(schema)))
