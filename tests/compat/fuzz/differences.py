"""Where a random program of cresset goes another way than PyTorch's on purpose: which step, what differs, with which operands, and why."""

import re

# Operators whose second operand PyTorch wants as a tensor; cresset takes a number for it, too.
NUMBER_FOR_TENSOR = "maximum|minimum|fmax|fmin|atan2|hypot|nextafter|heaviside|logical_and|logical_or|logical_xor|addcmul|addcdiv"

# (the step, what the difference says, what the operands look like before it, why)
KNOWN = [
    (rf"[.]({NUMBER_FOR_TENSOR})_?\(", r"instead of TypeError|only torch raised TypeError: \w+\(\): argument '(other|values|tensor1|tensor2)' \(position \d\) must be Tensor, not (int|float|bool|complex)", "", "a number serves as a tensor of no dimension"),
    (r"[.]clamp\(", r"only torch raised TypeError: clamp\(\) received an invalid combination of arguments - got \(Tensor, (int|float|bool|Tensor|NoneType), (int|float|bool|Tensor|NoneType)\)", "", "one bound may be a number and the other a tensor"),
    (r"[.](conj|mH|H|adjoint)\b", r"is_conj False instead of True|is_neg False instead of True", r"complex", "conj() computes; PyTorch puts it off"),
    (r"untyped_storage\(\)[.](fill_|copy_)\(", r"version \d+ instead of \d+", "", "a write through the storage is counted as a write"),
    (r"[.]cdist\(", r"only torch raised NotImplementedError: \"cdist\" not implemented for '(Half|BFloat16)'", r"float16", "PyTorch has no cdist of halves"),
    (r"[.](heaviside|unique|histogram)\(", r"requires_grad False instead of True", r"requires_grad", "there is no derivative: PyTorch refuses in backward, cresset gives a result that needs none"),
    (r"backward\(|[.]grad\(", r"only torch raised RuntimeError: Trying to backward through the graph a second time", "", "cresset saves less: what saved nothing can be walked again"),
    (r"", r"instead of", r"version none", "PyTorch writes to a tensor of inference mode, and then refuses"),
    (r"[.]conj_physical\(", r"shares the memory of|version \d+ instead of", r" (u?int\d+|b?float\d+|bool) ", "of real numbers PyTorch gives the tensor itself"),
    (r"[.]index_select\(", r"raised IndexError instead of RuntimeError: .*INDICES element is out of DATA bounds", "", "PyTorch's class depends on the dimension and the dtype"),
    (r"[.]jacobian\(", r"only torch raised RuntimeError: stack expects a non-empty TensorList", r"<\([^)]*\b0\b", "the Jacobian of nothing is empty"),
    (r"conv_transpose\dd\(|conv\dd\(", r"only torch raised RuntimeError: Only zero batch or zero channel inputs are supported", r"<\([^)]*\b0\b", "of nothing: PyTorch takes some empty inputs and not others"),
    (r"[.]median\(", r"instead of", r"<\([^)]*\b0\b[^)]*\) (complex|u?int)", "the median of nothing: PyTorch converts nan to the dtype"),
]  # fmt: skip


def known(step, why, operands):
    """The reason for a difference that is known, or None."""
    for in_step, in_why, in_operands, reason in KNOWN:
        if re.search(in_step, step) and re.search(in_why, why) and re.search(in_operands, operands):
            return reason
    return None
