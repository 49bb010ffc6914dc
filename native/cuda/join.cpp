// Joining tensors along a dimension: cat and stack. Pieces whose rows lie together are copied by one kernel, others one
// by one.
#include <algorithm>
#include <limits>

#include "cuda/divider.h"
#include "cuda/launch.h"
#include "dispatch/expendable.h"
#include "dispatch/late.h"
#include "dispatch/registration.h"
#include "tensor/blocks.h"

namespace cresset::cuda {
namespace {

constexpr int kPieces = 32, kBlock = 256, kUnroll = 4;

const KernelFamily kCopy("join.cuh", "copy_pieces", {"WORD", "BIG"});

// As in join.cuh; counted in elements until the width of the words is known.
struct Piece {
  const char* from = nullptr;
  int64_t words = 0, start = 0, pitch = 0;
  Divider row;
};
struct Pieces {
  char* to;
  int64_t pitch;
  Piece all[kPieces];
};

// The pieces of one launch.
class Batch {
 public:
  Batch(const Tensor& out, int64_t pitch) : out_(out), pitch_(pitch) {}

  // `row` elements that lie together, `pitch` apart, `start` after the beginning of a row of the result.
  void add(const char* from, int64_t elements, int64_t row, int64_t pitch, int64_t start) {
    if (count_ == kPieces) launch();
    pieces_.all[count_] = {from, elements, start, pitch, {}};
    rows_[count_++] = row;
  }
  void launch() {
    if (count_ == 0) return;
    const int64_t width = size_of(out_.dtype());
    int64_t word = 16, most = 0;
    const auto fits = [&](int64_t bytes) {
      while (bytes % word) word /= 2;
    };
    fits(static_cast<int64_t>(reinterpret_cast<uintptr_t>(out_.bytes()) % 16));
    fits(pitch_ * width);
    for (int i = 0; i < count_; ++i) {
      const Piece& p = pieces_.all[i];
      fits(static_cast<int64_t>(reinterpret_cast<uintptr_t>(p.from) % 16));
      fits(rows_[i] * width);
      fits(p.start * width);
      fits(p.pitch * width);
    }
    bool big = false;
    pieces_.to = out_.bytes();
    pieces_.pitch = pitch_ * width / word;
    for (int i = 0; i < count_; ++i) {
      Piece& p = pieces_.all[i];
      p.words = p.words * width / word;
      p.start = p.start * width / word;
      p.pitch = p.pitch * width / word;
      p.row = Divider(rows_[i] * width / word);
      most = std::max(most, p.words);
      big = big || p.words >= std::numeric_limits<int32_t>::max() - kBlock * kUnroll;
    }
    const int64_t blocks = std::min<int64_t>(divide_up(most, kBlock * kUnroll), 1 << 20);
    kCopy.launch(Place(out_.device()), {static_cast<int>(word), big}, Grid(blocks, count_), kBlock, 0, pieces_);
    count_ = 0;
  }

 private:
  const Tensor& out_;
  int64_t pitch_;
  Pieces pieces_;
  int64_t rows_[kPieces];
  int count_ = 0;
};

// The piece as rows that lie together, the same distance apart: its elements from `dim` on are dense, those before are
// walked by one stride.
bool as_rows(const Tensor& t, int64_t dim, int64_t rank, int64_t& row, int64_t& pitch) {
  const int64_t lead = t.dim() == rank ? dim : std::min(dim, t.dim());  // a stacked piece lacks the dimension
  row = 1;
  for (int64_t d = t.dim() - 1; d >= lead; --d) {
    if (t.size(d) != 1 && t.stride(d) != row) return false;
    row *= t.size(d);
  }
  pitch = row;
  int64_t expected = -1;
  for (int64_t d = lead - 1; d >= 0; --d) {
    if (t.size(d) == 1) continue;
    if (expected < 0)
      pitch = t.stride(d);
    else if (t.stride(d) != expected)
      return false;
    expected = t.stride(d) * t.size(d);
  }
  return pitch > 0;
}

void copy_one(const Tensor& out, int64_t dim, const Tensor& t, int64_t start) {
  Dims sizes = t.sizes(), strides = t.strides();
  if (t.dim() < out.dim()) sizes.insert(dim, 1), strides.insert(dim, 0);
  copy_into(view_of(out, sizes, out.strides(), out.offset() + start * out.stride(dim)),
            view_of(t, sizes, strides, t.offset()));
}

void join_into(const Tensor& out, int64_t dim, std::span<const Tensor> tensors, bool stacked) {
  if (out.numel() == 0) return;
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < out.dim(); ++d) inner *= out.size(d);
  Batch batch(out, out.size(dim) * inner);
  int64_t start = 0;
  for (const Tensor& t : tensors) {
    if (!stacked && t.dim() == 1 && t.numel() == 0) continue;  // an empty vector may stand among tensors of any shape
    int64_t row, pitch;
    if (t.numel()) {
      if (out.is_contiguous() && t.dtype() == out.dtype() && as_rows(t, dim, out.dim(), row, pitch) &&
          row < std::numeric_limits<int32_t>::max())
        batch.add(t.bytes(), t.numel(), row, pitch, start * inner);
      else
        copy_one(out, dim, t, start);
    }
    start += stacked ? 1 : t.size(dim);
  }
  batch.launch();
}

void run_cat(Call& c) { join_into(c.out(), wrap_dim(c.integer(1), c.out().dim()), c.tensors(0), false); }
// Note [Expendable memory]: pieces that lie as they would in the result, in memory that is nobody else's, are it.
bool join_late(Call& c) {
  const std::span<const Tensor> tensors = c.tensors(0);
  const Tensor& first = tensors[0];
  if (c.given_out || first.dim() == 0) return false;
  const int64_t dim = wrap_dim(c.integer(1), first.dim());
  Dims sizes = first.sizes();
  sizes[dim] = 0;
  for (const Tensor& t : tensors) {
    if (t.storage().get() != first.storage().get() || t.dtype() != first.dtype() || t.strides() != first.strides() ||
        t.offset() != first.offset() + sizes[dim] * first.stride(dim))
      return false;
    for (int64_t d = 0; d < first.dim(); ++d)
      if (d != dim && t.size(d) != first.size(d)) return false;
    sizes[dim] += t.size(dim);
  }
  if (contiguous_strides(sizes) != first.strides() || !Expendable::take(*first.storage())) return false;
  c.give(view_of(first, sizes, first.strides(), first.offset()));
  return true;
}
void run_stack(Call& c) { join_into(c.out(), wrap_dim(c.integer(1), c.out().dim()), c.tensors(0), true); }

}  // namespace

REGISTER_KERNELS(join) {
  r.set_kernel("cat", DeviceType::cuda, run_cat);
  r.set_kernel("stack", DeviceType::cuda, run_stack);
  let_compute_late("cat", DeviceType::cuda, join_late);
}

}  // namespace cresset::cuda
