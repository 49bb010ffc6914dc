// The private layout of images: what lies channel by channel to everyone who looks may lie point by point in memory.
//
// Note [Private layout]
// Convolutions are fastest when the channels of a point are neighbors in memory, and so is everything that follows
// them, while users expect (and PyTorch reports) contiguous images. So a Storage may hold the bytes of one contiguous
// tensor (images, channels, points...) as [image][point][channel], with a PrivateLayout that says so. Sizes, strides
// and offsets of its tensors stay what they are to the user.
//
// * Who asks for the memory (TensorImpl::data, Storage::plain) makes it plain first, once, for all tensors that share
// the
//   storage. Nobody can see bytes in the private order by accident, and there is no way back to it.
// * Who knows the layout asks for physical(tensor): the same memory, seen with the strides it really has. Operators
//   flagged kKnowsLayout get that from the call path (dispatch/in_layout.h); all they need is to treat channels_last
//   well.
// * A physical tensor pins the memory while it lives: a kernel that runs without the interpreter's lock may go on
// reading what
//   another thread has made plain meanwhile. What it would write then is lost; hence no operator may ask for the plain
//   memory of a storage that it has pinned.
// * A result becomes private only where it is made (keep_private), when nobody else has seen its storage.
//
// Note [Storages that were cut]
// A storage that is resized to fewer bytes has tensors that reach beyond it. That is allowed (it is how memory is given
// back while its tensors live on) until somebody reads them. Nobody should pay for a check of what almost never
// happens, so it hangs on the one that is made anyway: such a storage has a PrivateLayout of no width, hence what leads
// to plain() and the call path's slow branch leads to check_in_bounds() too. The mark goes when the storage is as large
// as it was.
#pragma once
#include "tensor/pending.h"
#include "tensor/tensor.h"

namespace cresset {

struct PrivateLayout {
  int64_t images = 0, channels = 0, points = 0, width = 0;  // width: bytes of an element
  int pins = 0;
  Memory retired = {};  // the memory, once it is only pinned
  // Of other storages (width 0) that are not like most:
  int64_t whole = 0;                  // one that was cut: the most bytes that it had
  bool foreign_bools = false;         // Note [Bytes that are bools]
  bool lazy = false;                  // Note [Lazy clones] in tensor/storage.h
  RefPtr<Pending> pending = nullptr;  // Note [Pending storages]; nothing else is set then
};

// The tensor is all of a storage in private layout, with the sizes that the layout has.
bool is_private(const TensorImpl& t);
// The memory as it lies: sizes as they are, strides of channels_last. Not defined when the tensor is not private (any
// more).
Tensor physical(const Tensor& t);
// A new tensor with the strides of channels_last becomes a contiguous one whose memory is private.
void keep_private(const Tensor& t);

// to[i][column][row] = from[i][row][column] for `count` matrices, elements of `width` bytes.
void transpose_matrices(void* to, const void* from, int64_t count, int64_t rows, int64_t columns, int64_t width,
                        Device device);

}  // namespace cresset
