"""Quasi-random points: SobolEngine, which gives PyTorch's points, scrambled ones too for the same seed.

Note [Direction numbers]: `sobol_directions.bin` holds the primitive polynomials and initial direction numbers of Joe
and Kuo (new-joe-kuo-6.21201; S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional
projections", SIAM J. Sci. Comput. 30, 2008), packed from the table in SciPy (BSD license), in bits, lowest first. Each
dimension after the first has a polynomial x^m + a_1 x^(m-1) + ... + a_(m-1) x + 1, in the order of m and of the number
a_1 ... a_(m-1): all primitive ones up to degree 18, _OF_DEGREE[m] of each. First come 2^17 bits that tell these from
the others, where those with an even number of a_i, which have the root 1, are left out: bit 2^(m-2) + i is that of the
polynomial whose a_1 ... a_(m-2) are the number i. Then come, for each polynomial, m odd numbers v_1 ... v_m, of which
v_i has i bits and is stored without its last.
"""

import pathlib

import cresset

from ..show import missing_names as _missing_names

__all__ = ["SobolEngine"]

_OF_DEGREE = (1, 1, 1, 2, 2, 6, 6, 18, 16, 48, 60, 176, 144, 630, 756, 1800, 2048, 7710, 7776)
_POLYNOMIAL_BITS = 1 << 17


def _polynomials(data, degree):
    """The numbers a_1 ... a_(m-1) of all primitive polynomials of a degree."""
    if degree == 1:
        return [0]
    first = 1 << degree - 2
    flags = int.from_bytes(data[: _POLYNOMIAL_BITS // 8], "little") >> first
    found = [i for i, flag in enumerate(reversed(format(flags & ((1 << first) - 1), "b"))) if flag == "1"]
    return [2 * i + 1 - i.bit_count() % 2 for i in found]


def _packed_directions(dimension):
    """For each degree: the inner coefficients of its polynomials, and the rows of their initial numbers."""
    data = (pathlib.Path(__file__).parent / "sobol_directions.bin").read_bytes()
    left, bit = dimension - 1, _POLYNOMIAL_BITS
    for degree, count in enumerate(_OF_DEGREE[1:], 1):
        rows = []
        width = degree * (degree - 1) // 2
        for _ in range(min(count, left)):
            bits = int.from_bytes(data[bit // 8 : (bit + width) // 8 + 1], "little") >> bit % 8
            bit += width
            row = []
            for i in range(degree):
                row.append((bits & ((1 << i) - 1)) << 1 | 1)
                bits >>= i
            rows.append(row)
        if rows:
            yield degree, _polynomials(data, degree)[: len(rows)], rows
        left -= len(rows)


def _direction_numbers(dimension, bits):
    """The direction numbers, (dimension, bits), with the first one in the highest bit."""
    state = cresset.ones(dimension, bits, dtype=cresset.int64)
    first = 1
    for degree, coefficients, rows in _packed_directions(dimension):
        block = state[first : first + len(rows)]
        first += len(rows)
        known = min(degree, bits)
        block[:, :known] = cresset.tensor(rows)[:, :known]
        coefficients = cresset.tensor(coefficients)
        # v_j = v_(j-m) ^ 2^m v_(j-m) ^ the sum of 2^k a_k v_(j-k): the recurrence of the polynomial.
        for j in range(degree, bits):
            value = block[:, j - degree] ^ (block[:, j - degree] << degree)
            for k in range(1, degree):
                value = value ^ ((coefficients >> degree - 1 - k & 1) * (block[:, j - k] << k))
            block[:, j] = value
    return state << cresset.arange(bits - 1, -1, -1)


class SobolEngine:
    """Points of the Sobol sequence in the unit cube, which fill it more evenly than random ones.

    Args:
        dimension: of the cube, up to 21201.
        scramble: shuffle the points (Owen's linear matrix scramble and a digital shift), which keeps them even.
        seed: for the scramble; None: the default generator decides.

    >>> cresset.quasirandom.SobolEngine(2).draw(4)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500],
            [0.2500, 0.7500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension, scramble=False, seed=None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"SobolEngine: dimension must be between 1 and {self.MAXDIM}, got {dimension}")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.sobolstate = _direction_numbers(dimension, self.MAXBIT)
        self.shift = cresset.zeros(dimension, dtype=cresset.int64)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n=1, out=None, dtype=None):
        """The next `n` points, as a tensor (n, dimension) of `dtype` (the default dtype).

        >>> engine = cresset.quasirandom.SobolEngine(1)
        >>> engine.draw(2).tolist(), engine.draw(2).tolist()
        ([[0.0], [0.5]], [[0.75], [0.25]])
        """
        dtype = cresset.get_default_dtype() if dtype is None else dtype
        parts = []
        if self.num_generated == 0:
            parts.append(self._first_point.to(dtype))
        if n > len(parts):
            points = self._points(n - len(parts))
            self.quasi = points[-1].clone()
            parts.append((points.double() / 2**self.MAXBIT).to(dtype))
        result = (
            cresset.cat(parts)
            if len(parts) > 1
            else parts[0]
            if parts
            else cresset.empty(0, self.dimension, dtype=dtype)
        )
        self.num_generated += n
        if out is not None:
            return out.resize_as_(result).copy_(result)
        return result

    def draw_base2(self, m, out=None, dtype=None):
        """The next 2**m points; all drawn so far must then be a power of two, for which the sequence is balanced."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                f"SobolEngine: {self.num_generated} points were drawn; with 2**{m} more, their number {total} is not "
                "a power of 2, "
                "and the points are not balanced. draw() gives them all the same"
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self):
        """Start again at the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n):
        """Skip `n` points."""
        steps = n - 1 if self.num_generated == 0 else n
        if steps > 0:
            start = max(self.num_generated - 1, 0)
            self.quasi = self._moved(cresset.tensor([self._gray(start + steps) ^ self._gray(start)]))[0]
        self.num_generated += n
        return self

    @staticmethod
    def _gray(count):
        return count ^ (count >> 1)

    def _points(self, n):
        """The `n` points after the current one, as integers. Point k is the sum of the directions in the Gray code of
        k.
        """
        start = max(self.num_generated - 1, 0)
        counts = cresset.arange(start + 1, start + n + 1)
        return self._moved((counts ^ (counts >> 1)) ^ self._gray(start))

    def _moved(self, codes):
        """The current point, moved by the directions whose bits are set in each code."""
        points = self.quasi.expand(len(codes), -1)
        for bit in range(int(codes.max()).bit_length()):
            points = points ^ ((codes >> bit & 1).unsqueeze(-1) * self.sobolstate[:, bit])
        return points

    def _scramble(self):
        generator = None
        if self.seed is not None:
            generator = cresset.Generator()
            generator.manual_seed(self.seed)
        bits = cresset.arange(self.MAXBIT)
        digits = cresset.randint(2, (self.dimension, self.MAXBIT), generator=generator)
        self.shift = (digits << bits).sum(-1)
        matrices = cresset.randint(2, (self.dimension, self.MAXBIT, self.MAXBIT), generator=generator).tril()
        matrices.diagonal(0, -2, -1).fill_(1)
        # Each direction number is a vector of bits, highest first; the matrix acts on it modulo 2.
        falling = bits.flip(0)
        vectors = (self.sobolstate.unsqueeze(-1) >> falling & 1).float()
        scrambled = (vectors @ matrices.float().mT).long() & 1
        self.sobolstate = (scrambled << falling).sum(-1)

    def __repr__(self):
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{self.__class__.__name__}({', '.join(parts)})"


__getattr__ = _missing_names.of(__name__)
