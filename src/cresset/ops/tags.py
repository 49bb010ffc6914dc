"""What can be said of an operator in one word: `torch.Tag`. Operators of torch.library keep the tags they are defined
with.
"""

import enum

__all__ = ["Tag"]

_NAMES = (
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view "
    "maybe_aliasing_or_mutating needs_contiguous_strides "
    "needs_exact_strides needs_fixed_stride_order nondeterministic_bitwise nondeterministic_seeded out out_variant "
    "pointwise pt2_compliant_tag reduction view_copy"
)


class _Numbered(enum.Enum):
    def __int__(self):
        return self.value

    __index__ = __int__


Tag = _Numbered("Tag", _NAMES, start=0, module="torch")  # type: ignore[call-arg]
