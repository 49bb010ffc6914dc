"""Runs PyTorch's sample inputs of its operators on cresset twice, eagerly and as a compiled region in which tensors of
every size are computed late: results and gradients have the same bits, and errors are the same.

    python tests/compat/compiled_samples.py [--match REGEX] [--samples N] [--dtypes float32,...]

PyTorch is where the samples come from. The last line is: `samples: N of M operators, S samples, findings F`.
"""

import argparse
import re
import sys
import warnings

DTYPES = "float32,float64,bfloat16,float16,int64,bool"
# What is not defined: elements that nobody wrote, and memory that overlaps.
UNDEFINED = re.compile(r"empty|resize|as_strided")


def tables(match):
    from torch.testing._internal.common_methods_invocations import op_db

    return [op for op in op_db if re.search(match, op.name) and not UNDEFINED.search(op.name)]


def find(library, name):
    """The function or method of that name, or None."""
    for owner in (library, library.Tensor):
        for part in name.split("."):
            owner = getattr(owner, part, None)
        if callable(owner):
            return owner
    return None


class Samples:
    """Sample inputs as cresset's tensors, with memory of their own."""

    def __init__(self):
        import torch

        import cresset

        self.ours, self.theirs = cresset, torch

    def convert(self, value):
        t, ours = self.theirs, self.ours
        if isinstance(value, t.Tensor):
            if value.layout is not t.strided or value.is_nested:
                raise TypeError("samples that are not strided")
            data = value.detach().resolve_conj().resolve_neg()
            wide = data.float() if data.dtype in (t.bfloat16, t.float16) else data
            made = ours.from_numpy(wide.numpy().copy()).to(getattr(ours, str(data.dtype)[6:])).clone()
            return made.requires_grad_() if value.requires_grad else made
        if isinstance(value, t.dtype):
            return getattr(ours, str(value)[6:])
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.convert, value)) if type(value) in (list, tuple) else tuple(value)
        if isinstance(value, dict):
            return {key: self.convert(item) for key, item in value.items()}
        if type(value).__module__.startswith("torch"):
            raise TypeError(f"samples of {type(value).__name__}")
        return value

    def run(self, function, sample):
        """All that comes of one sample: results, gradients and what is left of its inputs, or the error."""
        ours = self.ours
        ours.manual_seed(0)
        args, kwargs = self.convert([sample.input, *sample.args]), self.convert(sample.kwargs)
        try:
            result = function(*args, **kwargs)
            made = [*self.tensors(result)]
            wanted = [t for t in self.tensors([args, kwargs]) if t.requires_grad]
            graded = [t for t in made if t.requires_grad and t.is_floating_point()]
            grads = []
            if wanted and graded:
                total = sum((t * t).sum() for t in graded)
                grads = ours.autograd.grad(total, wanted, allow_unused=True)
            return [*made, *(g for g in grads if g is not None), *self.tensors([args, kwargs])]
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def tensors(self, value):
        if isinstance(value, self.ours.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            for item in value:
                yield from self.tensors(item)
        elif isinstance(value, dict):
            yield from self.tensors(list(value.values()))

    def late(self, function, sample):
        from cresset import _native

        least = _native.set_late_elements(1)
        try:
            return self.ours.compile(lambda: self.run(function, sample))()
        finally:
            _native.set_late_elements(least)

    def seen(self, results):
        """What two runs are compared by."""
        if isinstance(results, str):
            return results
        return [(t.dtype, tuple(t.shape), t.stride(), self.bits(t)) for t in results]

    def bits(self, tensor):
        return bytes(tensor.detach().resolve_conj().resolve_neg().contiguous().untyped_storage())


def check(match="", dtypes=DTYPES, limit=4):
    """(findings, operators that have samples, all operators, samples)"""
    import torch

    warnings.simplefilter("ignore")
    samples, findings, used, count, all_of_them = Samples(), [], set(), 0, tables(match)
    for op in all_of_them:
        function = find(samples.ours, op.name)
        if function is None:
            continue
        for name in dtypes.split(","):
            dtype = getattr(torch, name)
            if not op.supports_dtype(dtype, "cpu"):
                continue
            try:
                given = list(
                    op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd and dtype.is_floating_point)
                )
            except Exception:
                continue  # PyTorch's own table
            for number, sample in enumerate(given[:limit]):
                try:
                    eager = samples.seen(samples.run(function, sample))
                except (TypeError, AttributeError):
                    continue  # samples that are no plain tensors
                used.add(op.name)
                count += 1
                if samples.seen(samples.late(function, sample)) != eager:
                    findings.append(f"{op.name} {name}[{number}]")
    return findings, len(used), len({op.name for op in all_of_them}), count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", default="")
    parser.add_argument("--dtypes", default=DTYPES)
    parser.add_argument("--samples", type=int, default=4)
    given = parser.parse_args()
    findings, used, known, count = check(given.match, given.dtypes, given.samples)
    print(*findings, sep="\n")
    print(f"samples: {used} of {known} operators, {count} samples, findings {len(findings)}")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
