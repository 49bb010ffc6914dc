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
    # out=, and what shares memory
    (r"out=", r"^(?!only cresset raised (?!RuntimeError: \w+: unsupported operation))", r"operands share memory", "out= is an operand, or a part of one: PyTorch resizes or writes it before it reads; cresset computes, or refuses"),
    (r"out=", r"only torch raised RuntimeError: (Expected out (tensor|type)|Found dtype|index_select\(\): self and result must have the same scalar type|torch.\w+\(\): input types can't be cast)", r"", "out= of another dtype takes what can be cast to it"),
    (r"_\(|[-+*/%&|^]=|\] = ", r"only torch raised RuntimeError: unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location|instead of .* at ", r"operands share memory", "what is read and written is read first; PyTorch refuses where it notices, and else reads what it has written"),
    (r"masked_scatter_", r"only cresset raised RuntimeError: masked_scatter_: unsupported operation", r"operands share memory|\(0, |, 0[,)]", "writing where several elements share memory, or over what is read"),
    (r"", r"(shape|strides|bytes|version|offset|requires_grad|is_leaf|at) .*; both raised", r"", "after an error cresset leaves all as it was; PyTorch may have resized, written or counted before it noticed"),
    (r"[.]arange\(.*out=", r"only cresset raised RuntimeError: arange\(\): functions with out=", r"requires_grad", "out= that requires a gradient is refused for every function"),
    # nothing to compute, or what another check finds first
    (r"@|einsum|[.](mm|bmm|mv|tensordot|matmul|addmm|linear|multi_dot|dot|inner|baddbmm|matrix_power|outer|vdot)\(", r"not implemented for 'Bool'", r" bool ", "products of truth values: PyTorch computes some of them, of nothing or as sums of products"),
    (r"[.](normal_|uniform_|random_|bernoulli_|randn_like|rand_like|median|cummax|cummin|amin|amax|scaled_dot_product_attention|softmax|kthvalue|mode|pow_|aminmax)\(|[*][*]=", r"only cresset raised (NotImplementedError|RuntimeError: matmul: expected scalar type)", r"<\([^)]*\b0\b| bool ", "of nothing: PyTorch does not look at the dtype"),
    (r"[.]take_along_dim\(", r"only torch raised IndexError: Dimension specified as", r"<\(\) ", "a single number has one element along its only dimension"),
    (r"[.](trace|mean|index_copy_|index_add_|index_add|index_copy|index_fill|clamp|lerp_|transpose_|swapdims_|histc|unflatten|bilinear|select_scatter)\(|\] =|\] [-+*]=", r"^raised \w+ instead of \w+|only torch raised RuntimeError: (cannot reshape tensor of 0 elements|setStorage)", r"", "two things are wrong: which is noticed first differs"),
    (r"[.]nan_to_num_\(", r"only cresset raised RuntimeError: nan_to_num_: unsupported operation: more than one element", r" (bool|u?int\d+) ", "writing where several elements share memory is refused, also where PyTorch has nothing to do"),
    (r"\] =|[.]index_put", r"only torch raised RuntimeError: (Index put requires the source and destination dtypes match|value cannot be converted to type)", r"", "a value is converted to the dtype of what it is written to"),
    (r"[.](masked_fill|masked_fill_|linspace|full|fill_|index_fill|index_fill_|scatter|scatter_)\(", r"only torch raised RuntimeError: value cannot be converted to type u?int8_t without overflow", r"", "a fraction below zero is cut to an unsigned number"),
    (r"[.](index_select)\(", r"only torch raised RuntimeError: INDICES element is out of DATA bounds", r"<\([^)]*\b0\b", "of nothing: the places are not looked at"),
    (r"[.]frombuffer\(", r"instead of RuntimeError: .*could not retrieve buffer|object does not implement Python buffer protocol", r"", "which objects offer a buffer"),
    (r"through_(pickle|file)\(|deepcopy", r"only cresset raised (PicklingError|AttributeError): Can't pickle", r"", "hooks after accumulation travel with a leaf, and local functions cannot"),
    # memory
    (r"[.]set_\(", r"only cresset raised RuntimeError: setStorage", r"", "sizes beyond a storage are refused; PyTorch enlarges it"),
    (r"[.]set_\(", r"requires_grad False instead of True", r"", "memory is shared, not history"),
    (r"grown\(.*resize", r"bytes|Trying to resize storage that is not resizable", r"", "how much memory a result was given, and which copies NumPy made of it"),
    (r"untyped_storage\(\)[.]copy_", r"only torch raised RuntimeError: size does not match", r"<\([^)]*\b0\b", "of nothing"),
    (r"(select|slice|diagonal)_scatter\(", r"offset 0 instead of", r"", "the copy begins at the beginning of its memory"),
    (r"unsafe_chunk|[.]detach_\(", r"is being modified inplace|Can't detach views in-place|requires_grad True instead of False|is_leaf", r"", "unsafe_chunk gives views, whose writes are recorded"),
    (r"view\(t[.]", r"requires_grad True instead of False", r"requires_grad", "a view as another fraction is recorded"),
    (r"", r"is_leaf (True|False) instead of (RuntimeError|True|False)$", r"", "views made before their base required a gradient, or written to without recording: PyTorch refuses to tell, or tells of the history they would have"),
    (r"backward\(|[.]step\(", r"^\S+[.]grad: offset \d+ instead of \d+$", r"", "a gradient that PyTorch keeps as a part of a larger one"),
    (r"[.]resize_\(", r"version 1 instead of 0", r"", "resize_ to the sizes that a tensor has counts as a write"),
    (r"", r"only cresset raised RuntimeError: setStorage: .* are out of bounds for storage of size", r"", "memory that was cut off, or that a result was not given, is not read; PyTorch reads on"),
    (r"logical_(and|or|xor|not)_\(", r"only cresset raised RuntimeError: \w+: a (view of a )?leaf Variable that requires grad", r"requires_grad", "a leaf is not written to, whatever is written"),
    (r"[.]view\(t[.]", r"only cresset raised RuntimeError: self[.](stride|size)", r"<\([^)]*\b0\b", "of nothing: PyTorch does not look at strides"),
    (r"", r"only torch raised RuntimeError: Output \d of (Slice|View|Split|Unbind|Alias)\w* is a view and is being modified inplace", r"", "PyTorch's own views inside of an operation"),
    (r"[.]set_\(\)", r"instead of .* at ", r"", "PyTorch frees memory that from_dlpack shares"),
    (r"out=", r"only cresset raised RuntimeError: \w+\(\): functions with out=", r"requires_grad", "out= that requires a gradient is refused for every function"),
    (r"out=", r"requires_grad True instead of False|bytes -?\d+ instead of|version \d+ instead of", r"", "out= that PyTorch makes anew, or whose memory it had made larger before"),
    (r"(sigmoid|exp|mean|sum|cumsum)\(.*out=", r"instead of .* at ", r"b?float16", "out= of a wider dtype gets the wider result"),
    (r"", r"only torch raised RuntimeError: setStorage: .* are out of bounds for storage", r"", "views of memory that was cut off are made; what reads them is refused"),
    (r"^v\d+ = v\d+\[|contiguous|adaptive_avg_pool1d|conv1d|conv_transpose1d|slice_scatter|conj_physical|interpolate|pool|dim_order", r"^v\d+: strides \([-\d, ]+\) instead of \([-\d, ]+\)(; v\d+: offset \d+ instead of \d+)?$|said", r"", "the order in which a new result lies in memory"),
    (r"[.]set_\(", r"only torch raised RuntimeError: (a view of a leaf|Inplace update to inference)|shape|bytes", r"", "set_ of views and of tensors of inference mode; of memory that PyTorch had made larger"),
    (r"[.]from_numpy\(", r"only torch raised ValueError: At least one stride in the given numpy array is negative", r"", "a negative stride of a dimension of one element leads nowhere"),
    (r"untyped_storage\(\)[.]copy_", r"only cresset raised RuntimeError: copy_: The expanded size", r"", "storages of losses, which PyTorch had made larger"),
    (r"scatter_reduce\(|index_reduce", r"only torch raised NotImplementedError: \"scatter_gather\w+\" not implemented for 'Bool'", r" bool ", "the mean of truth values"),
    (r"autograd[.]grad\(", r"only cresset raised RuntimeError: One of the differentiated Tensors does not require grad", r"requires_grad is_leaf", "views made before their base required a gradient have none of their own"),
    (r"requires_grad", r"requires_grad True instead of False", r"", "which results PyTorch makes as views of others"),
    (r"cummax|cummin|cumsum_|searchsorted", r"only cresset raised NotImplementedError", r"<\(\) |<\([^)]*\b0\b", "of one number or nothing: PyTorch does not look at the dtype"),
    (r"[.]as_strided_\(", r"only cresset raised RuntimeError: as_strided_: the tensor requires grad", r"requires_grad", "as_strided_ is not recorded"),
    (r"clamp_?\(", r"instead of \d+ at .* uint8", r"uint8", "PyTorch wraps a negative bound round to a large unsigned one"),
    (r"conj_physical", r"tensors \[\] instead of", r" (u?int\d+|b?float\d+|bool) ", "of real numbers PyTorch gives the tensor itself"),
    (r"prod\(|cumsum\(|cumprod\(|sum\(", r"only torch raised RuntimeError: Autograd not support dtype", r"requires_grad", "a result in integers has no gradient"),
    (r"conv\dd\(|conv_transpose\dd\(", r"shape .* instead of", r"<\([^)]*\b0\b", "no channels: PyTorch's convolution of nothing has the sizes of the input"),
    (r"tanhshrink|log_softmax|layer_norm|rms_norm|gumbel_softmax|logsumexp|normalize|batch_norm|group_norm|instance_norm", r"instead of \(?-?0[.]0\d+ at|e-\d+ at", r"", "small results of terms near one: within some units of one"),
    (r"[.](cross|max|min|amax|amin|index_select|histc|new_tensor)\(", r"^raised|only torch raised RuntimeError: value cannot be converted", r"", "two things are wrong, or a fraction below zero is cut to an unsigned number"),
    (r"backward\(|[.]grad\(", r"only torch raised RuntimeError: one of the variables needed for gradient computation has been modified", r"", "cresset saves less, or what a change in place left untouched"),
    (r"backward\(|[.]grad\(", r"said ", r"", "which inputs of a node are told, and gradients that cancel"),
    (r"[.]data = ", r"bytes -?\d+ instead of", r"", "memory of losses, which PyTorch had made larger"),
    (r"vmap\(|jacrev|jacobian", r"only torch raised IndexError: select\(\): index 0 out of range", r"<\(0", "a batch of nothing is nothing"),
    (r"batch_norm\(", r"only torch raised ValueError: Expected more than 1 value per channel", r"<\(1, 0", "of no channels"),
    (r"asarray\(n\d+\)|as_tensor\(n\d+\)", r"shares the memory of", r"", "an array of no dimension: PyTorch copies it"),
    # values
    (r"[.]norm\(", r"nan instead of inf", r"nan", "nan stays nan"),
    (r"[.]digamma\(|[.]lgamma\(", r"instead of 0[.]0\d+ at", r"", "near a root: within some units of one"),
    (r"//=|floor_divide_|remainder_|%=|fmod_", r"ZeroDivisionError|both raised", r"", "PyTorch had written some elements when it met the zero"),
]  # fmt: skip


def known(step, why, operands):
    """The reason for a difference that is known, or None."""
    for in_step, in_why, in_operands, reason in KNOWN:
        if re.search(in_step, step) and re.search(in_why, why) and re.search(in_operands, operands):
            return reason
    return None
