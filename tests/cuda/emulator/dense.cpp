#include "dense.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace emulator {

Number read_number(int type, const void* data, int64_t at) {
  switch (type) {
    case CUDA_R_32F: return static_cast<const float*>(data)[at];
    case CUDA_R_64F: return static_cast<const double*>(data)[at];
    case CUDA_C_32F: return Number(static_cast<const std::complex<float>*>(data)[at]);
    default: return static_cast<const Number*>(data)[at];
  }
}
void write_number(int type, void* data, int64_t at, Number value) {
  switch (type) {
    case CUDA_R_32F: static_cast<float*>(data)[at] = float(value.real()); break;
    case CUDA_R_64F: static_cast<double*>(data)[at] = value.real(); break;
    case CUDA_C_32F: static_cast<std::complex<float>*>(data)[at] = std::complex<float>(value); break;
    default: static_cast<Number*>(data)[at] = value;
  }
}

Matrix::Matrix(int type, const void* data, int64_t rows, int64_t columns, int64_t leading) : Matrix(rows, columns) {
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) (*this)(i, j) = read_number(type, data, j * leading + i);
}
void Matrix::store(int type, void* data, int64_t leading) const {
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) write_number(type, data, j * leading + i, (*this)(i, j));
}
Matrix Matrix::in(Form form) const {
  if (form == plain) return *this;
  Matrix t(columns, rows);
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) t(j, i) = form == adjoint ? std::conj((*this)(i, j)) : (*this)(i, j);
  return t;
}
Matrix identity(int64_t n) {
  Matrix one(n, n);
  for (int64_t i = 0; i < n; ++i) one(i, i) = 1;
  return one;
}
Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (int64_t j = 0; j < b.columns; ++j)
    for (int64_t k = 0; k < a.columns; ++k)
      for (int64_t i = 0; i < a.rows; ++i) c(i, j) += a(i, k) * b(k, j);
  return c;
}

int factor_cholesky(Matrix& a, bool upper) {
  const auto at = [&](int64_t i, int64_t j) { return upper ? std::conj(a(j, i)) : a(i, j); };  // of L
  const auto set = [&](int64_t i, int64_t j, Number value) {
    (upper ? a(j, i) : a(i, j)) = upper ? std::conj(value) : value;
  };
  for (int64_t j = 0; j < a.rows; ++j) {
    double square = at(j, j).real();
    for (int64_t k = 0; k < j; ++k) square -= std::norm(at(j, k));
    if (!(square > 0)) return int(j + 1);
    set(j, j, std::sqrt(square));
    for (int64_t i = j + 1; i < a.rows; ++i) {
      Number sum = at(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= at(i, k) * std::conj(at(j, k));
      set(i, j, sum / at(j, j));
    }
  }
  return 0;
}

int factor_lu(Matrix& a, std::vector<int64_t>* pivots) {
  int info = 0;
  const auto size = [](Number x) { return std::abs(x.real()) + std::abs(x.imag()); };
  for (int64_t j = 0; j < std::min(a.rows, a.columns); ++j) {
    int64_t best = j;
    for (int64_t i = j + 1; i < a.rows && pivots; ++i)
      if (size(a(i, j)) > size(a(best, j))) best = i;
    if (pivots) pivots->push_back(best + 1);
    if (best != j)
      for (int64_t k = 0; k < a.columns; ++k) std::swap(a(j, k), a(best, k));
    if (a(j, j) == 0.0) {
      if (!info) info = int(j + 1);
      continue;
    }
    for (int64_t i = j + 1; i < a.rows; ++i) {
      a(i, j) /= a(j, j);
      for (int64_t k = j + 1; k < a.columns; ++k) a(i, k) -= a(i, j) * a(j, k);
    }
  }
  return info;
}

void solve_triangle(const Matrix& a, Matrix& b, bool upper, bool left, bool unit, Form form) {
  if (!left) {  // X op(A) = B is op(A)ᵀ Xᵀ = Bᵀ
    Matrix turned = b.in(transposed);
    solve_triangle(a.in(form).in(transposed), turned, form == plain ? !upper : upper, true, unit, plain);
    b = turned.in(transposed);
    return;
  }
  const Matrix t = a.in(form);
  if (form != plain) upper = !upper;
  const int64_t n = t.rows;
  for (int64_t c = 0; c < b.columns; ++c)
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = upper ? n - 1 - step : step;
      Number sum = b(i, c);
      for (int64_t k = upper ? i + 1 : 0; k < (upper ? n : i); ++k) sum -= t(i, k) * b(k, c);
      b(i, c) = unit ? sum : sum / t(i, i);
    }
}

void solve_lu(const Matrix& lu, const int64_t* pivots, Matrix& b, Form form) {
  const auto exchange = [&](int64_t i) {
    const int64_t other = pivots[i] - 1;
    if (other != i)
      for (int64_t c = 0; c < b.columns; ++c) std::swap(b(i, c), b(other, c));
  };
  if (form == plain) {
    for (int64_t i = 0; i < lu.rows; ++i) exchange(i);
    solve_triangle(lu, b, false, true, true, plain);
    solve_triangle(lu, b, true, true, false, plain);
  } else {
    solve_triangle(lu, b, true, true, false, form);
    solve_triangle(lu, b, false, true, true, form);
    for (int64_t i = lu.rows; i-- > 0;) exchange(i);
  }
}

void factor_qr(Matrix& a, std::vector<Number>& tau) {
  for (int64_t j = 0; j < std::min(a.rows, a.columns); ++j) {
    double below = 0;
    for (int64_t i = j + 1; i < a.rows; ++i) below += std::norm(a(i, j));
    const Number first = a(j, j);
    if (below == 0 && first.imag() == 0) {
      tau.push_back(0);
      continue;
    }
    const double length = -std::copysign(std::sqrt(std::norm(first) + below), first.real());
    const Number factor((length - first.real()) / length, -first.imag() / length);
    for (int64_t i = j + 1; i < a.rows; ++i) a(i, j) /= first - length;
    a(j, j) = length;
    tau.push_back(factor);
    for (int64_t c = j + 1; c < a.columns; ++c) {
      Number sum = a(j, c);
      for (int64_t i = j + 1; i < a.rows; ++i) sum += std::conj(a(i, j)) * a(i, c);
      sum *= std::conj(factor);
      a(j, c) -= sum;
      for (int64_t i = j + 1; i < a.rows; ++i) a(i, c) -= sum * a(i, j);
    }
  }
}

Matrix reflections(const Matrix& a, const std::vector<Number>& tau) {
  Matrix q = identity(a.rows);
  for (size_t step = tau.size(); step-- > 0;) {
    const auto j = int64_t(step);
    for (int64_t c = 0; c < q.columns; ++c) {
      Number sum = q(j, c);
      for (int64_t i = j + 1; i < a.rows; ++i) sum += std::conj(a(i, j)) * q(i, c);
      sum *= tau[step];
      q(j, c) -= sum;
      for (int64_t i = j + 1; i < a.rows; ++i) q(i, c) -= sum * a(i, j);
    }
  }
  return q;
}

int factor_symmetric(Matrix& a, std::vector<int64_t>& pivots) {
  const double alpha = (1 + std::sqrt(17.0)) / 8;
  const auto size = [](Number x) { return std::abs(x.real()) + std::abs(x.imag()); };
  const int64_t n = a.rows;
  int info = 0;
  for (int64_t k = 0, step = 1; k < n; k += step) {
    step = 1;
    int64_t other = k, far = k;
    double column = 0, row = 0;
    for (int64_t i = k + 1; i < n; ++i)
      if (size(a(i, k)) > column) column = size(a(i, k)), far = i;
    if (std::max(size(a(k, k)), column) == 0) {
      if (!info) info = int(k + 1);
      pivots.push_back(k + 1);
      continue;
    }
    if (size(a(k, k)) < alpha * column) {
      for (int64_t j = k; j < far; ++j) row = std::max(row, size(a(far, j)));
      for (int64_t i = far + 1; i < n; ++i) row = std::max(row, size(a(i, far)));
      if (size(a(k, k)) < alpha * column * (column / row)) other = far, step = size(a(far, far)) >= alpha * row ? 1 : 2;
    }
    const int64_t last = k + step - 1;
    if (other != last) {
      for (int64_t i = other + 1; i < n; ++i) std::swap(a(i, last), a(i, other));
      for (int64_t j = last + 1; j < other; ++j) std::swap(a(j, last), a(other, j));
      std::swap(a(last, last), a(other, other));
      if (step == 2) std::swap(a(k + 1, k), a(other, k));
    }
    if (step == 1) {
      for (int64_t j = k + 1; j < n; ++j)
        for (int64_t i = j; i < n; ++i) a(i, j) -= a(i, k) * a(j, k) / a(k, k);
      for (int64_t i = k + 1; i < n; ++i) a(i, k) /= a(k, k);
      pivots.push_back(other + 1);
      continue;
    }
    const Number between = a(k + 1, k), first = a(k + 1, k + 1) / between, second = a(k, k) / between,
                 factor = 1.0 / (first * second - 1.0) / between;
    for (int64_t j = k + 2; j < n; ++j) {
      const Number one = factor * (first * a(j, k) - a(j, k + 1)), two = factor * (second * a(j, k + 1) - a(j, k));
      for (int64_t i = j; i < n; ++i) a(i, j) -= a(i, k) * one + a(i, k + 1) * two;
      a(j, k) = one, a(j, k + 1) = two;
    }
    pivots.insert(pivots.end(), 2, -(other + 1));
  }
  return info;
}

void solve_symmetric(const Matrix& a, const int64_t* pivots, Matrix& b) {
  const int64_t n = a.rows;
  for (int64_t c = 0; c < b.columns; ++c) {
    const auto exchange = [&](int64_t i, int64_t j) { std::swap(b(i, c), b(j, c)); };
    for (int64_t k = 0; k < n;) {
      if (pivots[k] > 0) {
        exchange(k, pivots[k] - 1);
        for (int64_t i = k + 1; i < n; ++i) b(i, c) -= a(i, k) * b(k, c);
        b(k, c) /= a(k, k);
        ++k;
        continue;
      }
      exchange(k + 1, -pivots[k] - 1);
      for (int64_t i = k + 2; i < n; ++i) b(i, c) -= a(i, k) * b(k, c) + a(i, k + 1) * b(k + 1, c);
      const Number x = b(k, c), y = b(k + 1, c), p = a(k, k), q = a(k + 1, k), r = a(k + 1, k + 1),
                   determinant = p * r - q * q;
      b(k, c) = (r * x - q * y) / determinant, b(k + 1, c) = (p * y - q * x) / determinant;
      k += 2;
    }
    for (int64_t k = n - 1; k >= 0;) {
      const int64_t first = pivots[k] > 0 ? k : k - 1;
      for (int64_t j = first; j <= k; ++j)
        for (int64_t i = k + 1; i < n; ++i) b(j, c) -= a(i, j) * b(i, c);
      exchange(k, std::abs(pivots[k]) - 1);
      k = first - 1;
    }
  }
}

namespace {

// The rotation that makes two columns orthogonal: p' = c p - s w q, q' = s p + c w q, with w of size 1.
struct Rotation {
  double c = 1, s = 0;
  Number w = 1;
  // From the squares of their lengths and their inner product, or from the three elements of a Hermitian matrix.
  Rotation(double pp, double qq, Number pq) {
    const double size = std::abs(pq), tau = (qq - pp) / (2 * size);
    const double t = std::copysign(1.0, tau) / (std::abs(tau) + std::sqrt(1 + tau * tau));
    c = 1 / std::sqrt(1 + t * t), s = t * c, w = std::conj(pq) / size;
  }
  void turn(Number& p, Number& q) const {
    const Number before = p;
    p = c * before - s * w * q;
    q = s * before + c * w * q;
  }
  void turn_columns(Matrix& m, int64_t p, int64_t q) const {
    for (int64_t i = 0; i < m.rows; ++i) turn(m(i, p), m(i, q));
  }
};
constexpr int kSweeps = 60;

Matrix with_columns(const Matrix& m, const std::vector<int64_t>& order) {
  Matrix result(m.rows, int64_t(order.size()));
  for (size_t j = 0; j < order.size(); ++j)
    for (int64_t i = 0; i < m.rows; ++i) result(i, int64_t(j)) = m(i, order[j]);
  return result;
}

// Columns from `first` on become orthogonal to all before them.
void complete(Matrix& q, int64_t first) {
  for (int64_t j = first; j < q.columns; ++j)
    for (int64_t start = 0; start < q.rows; ++start) {
      std::vector<Number> v(size_t(q.rows));
      v[size_t((start + j) % q.rows)] = 1;
      for (int pass = 0; pass < 2; ++pass)
        for (int64_t k = 0; k < j; ++k) {
          Number inner = 0;
          for (int64_t i = 0; i < q.rows; ++i) inner += std::conj(q(i, k)) * v[size_t(i)];
          for (int64_t i = 0; i < q.rows; ++i) v[size_t(i)] -= inner * q(i, k);
        }
      double length = 0;
      for (const Number x : v) length += std::norm(x);
      if (length < 0.01) continue;
      for (int64_t i = 0; i < q.rows; ++i) q(i, j) = v[size_t(i)] / std::sqrt(length);
      break;
    }
}

}  // namespace

std::vector<double> eigen_hermitian(Matrix& a, bool upper) {
  const int64_t n = a.rows;
  for (int64_t i = 0; i < n; ++i) {
    a(i, i) = a(i, i).real();
    for (int64_t j = 0; j < i; ++j) (upper ? a(i, j) : a(j, i)) = std::conj(upper ? a(j, i) : a(i, j));
  }
  Matrix vectors = identity(n);
  double total = 0;
  for (const Number x : a.elements) total += std::norm(x);
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        if (!(std::norm(a(p, q)) > 1e-34 * total)) continue;
        const Rotation rotation(a(p, p).real(), a(q, q).real(), a(p, q));
        rotation.turn_columns(a, p, q);
        a = a.in(adjoint);
        rotation.turn_columns(a, p, q);
        a = a.in(adjoint);
        rotation.turn_columns(vectors, p, q);
      }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return a(i, i).real() < a(j, j).real(); });
  std::vector<double> values;
  for (const int64_t i : order) values.push_back(a(i, i).real());
  a = with_columns(vectors, order);
  return values;
}

bool singular_values(const Matrix& a, Matrix& u, std::vector<double>& values, Matrix& v) {
  if (a.rows < a.columns) return singular_values(a.in(adjoint), v, values, u);
  const int64_t n = a.columns;
  Matrix turned = a, right = identity(n);
  for (const Number x : a.elements)
    if (!std::isfinite(x.real()) || !std::isfinite(x.imag())) return false;
  const auto inner = [&](int64_t p, int64_t q) {
    Number sum = 0;
    for (int64_t i = 0; i < turned.rows; ++i) sum += std::conj(turned(i, p)) * turned(i, q);
    return sum;
  };
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        const double pp = inner(p, p).real(), qq = inner(q, q).real();
        const Number pq = inner(p, q);
        if (!(std::norm(pq) > 1e-32 * pp * qq)) continue;
        const Rotation rotation(pp, qq, pq);
        rotation.turn_columns(turned, p, q);
        rotation.turn_columns(right, p, q);
      }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return inner(i, i).real() > inner(j, j).real(); });
  values.clear();
  for (const int64_t i : order) values.push_back(std::sqrt(inner(i, i).real()));
  v = with_columns(right, order);
  u = Matrix(a.rows, a.rows);
  int64_t known = 0;
  for (; known < n && values[size_t(known)] > 1e-14 * values[0]; ++known)
    for (int64_t i = 0; i < a.rows; ++i) u(i, known) = turned(i, order[size_t(known)]) / values[size_t(known)];
  complete(u, known);
  return true;
}

std::vector<Number> eigen_general(const Matrix& a, Matrix& vectors) {
  const int64_t n = a.rows;
  Matrix t = a, q = identity(n);
  double scale = 0;
  for (const Number x : a.elements) scale = std::max(scale, std::abs(x));
  // QR with the shift of the last element's 2 x 2 block nearest to it, until its row is empty left of the diagonal.
  for (int64_t last = n - 1; last > 0;) {
    for (int step = 0;; ++step) {
      double left = 0;
      for (int64_t j = 0; j < last; ++j) left = std::max(left, std::abs(t(last, j)));
      if (left <= 1e-15 * scale || step == 300) break;
      const Number half = (t(last - 1, last - 1) - t(last, last)) / 2.0,
                   root = std::sqrt(half * half + t(last - 1, last) * t(last, last - 1));
      Number shift = t(last, last) + half + (std::abs(half + root) < std::abs(half - root) ? root : -root);
      if (step % 11 == 10) shift += scale * Number(0.3, 0.4);
      Matrix block(last + 1, last + 1);
      for (int64_t i = 0; i <= last; ++i)
        for (int64_t j = 0; j <= last; ++j) block(i, j) = t(i, j) - (i == j ? shift : 0.0);
      std::vector<Number> tau;
      factor_qr(block, tau);
      const Matrix turn = reflections(block, tau);
      Matrix whole = identity(n);
      for (int64_t i = 0; i <= last; ++i)
        for (int64_t j = 0; j <= last; ++j) whole(i, j) = turn(i, j);
      t = product(product(whole.in(adjoint), t), whole);
      q = product(q, whole);
    }
    --last;
  }
  std::vector<Number> values;
  vectors = Matrix(n, n);
  for (int64_t k = 0; k < n; ++k) {
    values.push_back(t(k, k));
    Matrix x(n, 1);
    x(k, 0) = 1;
    for (int64_t i = k; i-- > 0;) {
      Number sum = 0;
      for (int64_t j = i + 1; j <= k; ++j) sum -= t(i, j) * x(j, 0);
      const Number gap = t(i, i) - t(k, k);
      x(i, 0) = sum / (std::abs(gap) > 1e-300 ? gap : Number(1e-15 * std::max(scale, 1e-300)));
    }
    const Matrix v = product(q, x);
    double length = 0;
    Number largest = 0;
    for (int64_t i = 0; i < n; ++i) {
      length += std::norm(v(i, 0));
      if (std::abs(v(i, 0)) > std::abs(largest) * (1 + 1e-9)) largest = v(i, 0);
    }
    for (int64_t i = 0; i < n; ++i)
      vectors(i, k) = v(i, 0) / std::sqrt(length) * (std::conj(largest) / std::abs(largest));
  }
  return values;
}

}  // namespace emulator
