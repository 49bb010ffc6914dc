#include "ops/convolution_direct.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/levels.h"
#include "base/parallel.h"
#include "ops/convolution_pieces.h"
#include "tensor/transpose.h"

namespace cresset {
namespace {

using Kind = ConvolutionKind;

constexpr int64_t kLeastChannels = 8;     // with fewer results for a point, vectors of channels would be mostly empty
constexpr int64_t kPointsTogether = 512;  // of a window
constexpr int64_t kPointsOfSums = 128;    // whose gradients stay in the first-level cache
constexpr int64_t kLongestSum = 256;      // elements of a block, whose filter stays in the cache
constexpr int64_t kWindowsTogether =
    1 << 16;                             // floats of the windows of several images: a half of the second-level cache
constexpr int64_t kChannelsTurned = 16;  // of the source, when filters are packed
constexpr double kWorkOfThread = 4e6;    // multiplications and additions

const DirectKernels& kernels() {
  static const DirectKernels the = BY_LEVEL(direct_kernels, ());
  return the;
}

bool is_own_filter_each(const ConvolutionSizes& c) {
  return c.groups > 1 && c.in_channels == c.groups && c.out_channels == c.groups;
}

struct Tap {
  int64_t which, offset;  // of the kernel; from the point, in points of the source
};

// Results that see the same taps, in one dimension: first, first + step, ...
struct Phase {
  int64_t first, count;
  std::vector<Tap> taps;
};

std::vector<Phase> phases_of(const ConvolutionSizes& c, int d) {
  std::vector<Phase> all;
  if (c.kind != Kind::input_gradient) {
    Phase p{0, c.out[d], {}};
    for (int64_t t = 0; t < c.kernel[d]; ++t) p.taps.push_back({t, t * c.dilation[d] - c.before[d]});
    all.push_back(std::move(p));
    return all;
  }
  for (int64_t first = 0; first < std::min(c.stride[d], c.in[d]); ++first) {
    Phase p{first, (c.in[d] - first + c.stride[d] - 1) / c.stride[d], {}};
    for (int64_t t = c.kernel[d] - 1; t >= 0; --t) {  // so that offsets grow
      const int64_t place = first + c.before[d] - t * c.dilation[d];
      if (place % c.stride[d] == 0) p.taps.push_back({t, place / c.stride[d]});
    }
    all.push_back(std::move(p));
  }
  return all;
}

// A convolution of one tap that sees each point as it is has only points, in one row.
ConvolutionSizes as_one_row(const ConvolutionSizes& given) {
  ConvolutionSizes c = given;
  int64_t points = c.images;
  for (int d = 0; d < 3; ++d) {
    if (c.kernel[d] != 1 || c.stride[d] != 1 || c.before[d] != 0 || c.after[d] != 0) return given;
    points *= c.in[d];
    c.in[d] = c.out[d] = 1;
  }
  c.images = 1;
  c.in[2] = c.out[2] = points;
  return c;
}

class DirectConvolution : public ConvolutionKernel {
 public:
  explicit DirectConvolution(const ConvolutionSizes& given)
      : c_(as_one_row(given)), own_each_(is_own_filter_each(given)) {
    const bool back = c_.kind == Kind::input_gradient;
    const int64_t lanes = kernels().lanes;
    from_ = back ? c_.out_channels : c_.in_channels;
    to_ = back ? c_.in_channels : c_.out_channels;
    groups_ = own_each_ ? 1 : c_.groups;
    const int64_t all_vectors = (to_ / groups_ + lanes - 1) / lanes;
    panels_ = own_each_ ? 1 : (all_vectors + kernels().most_vectors - 1) / kernels().most_vectors;
    vectors_ = (all_vectors + panels_ - 1) / panels_;
    for (int d = 0; d < 3; ++d) {
      source_[d] = back ? c_.out[d] : c_.in[d];
      result_[d] = back ? c_.in[d] : c_.out[d];
      step_[d] = back ? 1 : c_.stride[d];
      result_step_[d] = back ? c_.stride[d] : 1;
    }
    plan();
  }

  bool packs_like(const ConvolutionKernel&) const override { return true; }  // what depends on channels and taps only

  void pack(const float* weight, char* packed) const override {
    float* const to = reinterpret_cast<float*>(packed);
    parallel_for(groups_ * panels_, std::max<int64_t>(1, 16384 / std::max<int64_t>(panel_size(), 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     for (const Part& part : parts_)
                       pack_panel(part, i / panels_, i % panels_, weight, to + place_of(part, i));
                 });
  }
  void unpack(const char* packed, float* weight) const override {
    const float* const from = reinterpret_cast<const float*>(packed);
    const Part& part = parts_[0];
    parallel_for(groups_ * panels_, std::max<int64_t>(1, 16384 / std::max<int64_t>(panel_size(), 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     unpack_panel(part, i / panels_, i % panels_, from + place_of(part, i), weight);
                 });
  }

  void run(const float* from, const char* packed, const float* bias, float* to, char* scratch) const override {
    float* const added = reinterpret_cast<float*>(scratch);
    if (bias) {
      std::fill_n(added, groups_ * panels_ * width(), 0.0f);
      for (int64_t g = 0; g < groups_; ++g)
        std::copy_n(bias + g * to_ / groups_, to_ / groups_, added + g * panels_ * width());
    }
    const float* const filter = reinterpret_cast<const float*>(packed);
    for_windows(from, added + groups_ * panels_ * width(), [&](const Windows& w) {
      for (const Part& part : parts_) {
        const int64_t count = std::min(w.rows, part.count[1] - w.row);
        if (w.plane >= part.count[0] || count <= 0) continue;
        float* const place = to + result_place(w.image, part.first[0] + w.plane * result_step_[0],
                                               part.first[1] + w.row * result_step_[1], part.first[2]);
        if (own_each_)
          run_channels(part, w.data, filter, bias ? added : nullptr, place, count);
        else
          run_part(part, w, filter, bias ? added : nullptr, place, count);
      }
    });
  }

  void run_weight(const float* grad, const float* input, char* packed, char* scratch) const override {
    float* const sums = reinterpret_cast<float*>(packed);
    std::fill_n(sums, weight_bytes / static_cast<int64_t>(sizeof(float)), 0.0f);
    const Part& part = parts_[0];
    const int64_t rows_of_sums = std::max<int64_t>(1, kPointsOfSums / part.count[2]);
    for_windows(input, reinterpret_cast<float*>(scratch), [&](const Windows& w) {
      for (int64_t r = 0; r < w.rows; r += rows_of_sums)
        for (int64_t column = 0; column < part.count[2]; column += kPointsOfSums) {
          Windows some = w;
          some.rows = std::min(rows_of_sums, w.rows - r);
          some.data += r * step_[1] * row_ + column * step_[2] * point_;
          add_sums(part, grad + result_place(w.image, w.plane, w.row + r, column), some,
                   std::min(kPointsOfSums, part.count[2] - column), sums);
        }
    });
  }

 private:
  // The results of one phase in each dimension.
  struct Part {
    int64_t first[3], count[3], elements = 0;  // elements: of the sum
    std::array<std::vector<Tap>, 3> taps;
    std::vector<Stretch> stretches;
    std::vector<int64_t> blocks;  // the end of each block of stretches
    int64_t filter = 0;           // where its panels begin
  };

  ConvolutionSizes c_;
  bool own_each_;
  int64_t from_, to_, groups_, panels_, vectors_;  // channels of source and result; what one group's results take
  int64_t source_[3], result_[3], step_[3], result_step_[3];
  int64_t low_[3], grid_[3];            // the least offset of a tap; the most results of a phase
  int64_t point_, row_, plane_, rows_;  // steps in a window; results of a window, in rows
  int64_t window_[3];                   // its size
  int64_t together_;                    // windows of so many images are at hand at once
  bool copies_;
  std::vector<Part> parts_;

  int64_t width() const { return vectors_ * kernels().lanes; }
  int64_t from_group() const { return own_each_ ? 1 : from_ / groups_; }
  int64_t to_group() const { return to_ / groups_; }
  int64_t panel_size() const { return parts_.empty() ? 0 : parts_[0].elements * width(); }
  int64_t place_of(const Part& part, int64_t panel) const { return part.filter + panel * part.elements * width(); }
  int64_t grads_size() const { return kPointsOfSums * width(); }
  int64_t window_size() const { return window_[0] * plane_ + kernels().lanes; }
  // Blocks of rows of results, the same of one image or of several.
  struct Windows {
    int64_t image, images, plane, row, rows;
    const float* data;  // begins at the taps' least offset of the first result
    int64_t step;       // from one image's window to the next one's
  };
  int64_t result_place(int64_t image, int64_t plane, int64_t row, int64_t column) const {
    return (((image * result_[0] + plane) * result_[1] + row) * result_[2] + column) * to_;
  }

  void plan() {
    const std::vector<Phase> all[3] = {phases_of(c_, 0), phases_of(c_, 1), phases_of(c_, 2)};
    bool inside = true;
    for (int d = 0; d < 3; ++d) {
      int64_t high = 0;
      low_[d] = 0, grid_[d] = 0;
      bool any = false;
      for (const Phase& p : all[d]) {
        grid_[d] = std::max(grid_[d], p.count);
        for (const Tap& t : p.taps) {
          low_[d] = any ? std::min(low_[d], t.offset) : t.offset;
          high = any ? std::max(high, t.offset) : t.offset;
          any = true;
        }
      }
      window_[d] = (grid_[d] - 1) * step_[d] + high - low_[d] + 1;
      inside &= low_[d] >= 0 && low_[d] + window_[d] <= source_[d];
    }
    rows_ = std::clamp<int64_t>(kPointsTogether / std::max<int64_t>(grid_[2], 1), 1, std::max<int64_t>(grid_[1], 1));
    point_ = own_each_ ? width() : from_;
    copies_ = !inside || point_ != from_;
    window_[0] -= (grid_[0] - 1) * step_[0];
    window_[1] -= (grid_[1] - rows_) * step_[1];
    row_ = (copies_ ? window_[2] : source_[2]) * point_;
    plane_ = (copies_ ? window_[1] : source_[1]) * row_;
    int64_t floats = 0;
    for (const Phase& pd : all[0])
      for (const Phase& ph : all[1])
        for (const Phase& pw : all[2]) {
          Part part{{pd.first, ph.first, pw.first},
                    {pd.count, ph.count, pw.count},
                    0,
                    {pd.taps, ph.taps, pw.taps},
                    {},
                    {},
                    floats};
          make_stretches(part);
          floats += groups_ * panels_ * part.elements * width();
          parts_.push_back(std::move(part));
        }
    const bool sums = c_.kind == Kind::weight_gradient;
    const int64_t window = copies_ ? window_size() : 0;
    // Filters of many channels do not stay in the cache from one image to the next: where the windows of several images
    // do, each part of the filter meets them all.
    const bool whole_images = grid_[0] == 1 && rows_ >= grid_[1] && !own_each_;
    together_ = whole_images ? std::clamp<int64_t>(kWindowsTogether / window_size(), 1, c_.images) : 1;
    weight_bytes = floats * static_cast<int64_t>(sizeof(float));
    scratch_bytes =
        (window * together_ + (sums ? 0 : groups_ * panels_ * width())) * static_cast<int64_t>(sizeof(float));
  }

  void make_stretches(Part& part) const {
    const bool join = groups_ == 1 && !own_each_;
    for (const Tap& td : part.taps[0])
      for (const Tap& th : part.taps[1])
        for (const Tap& tw : part.taps[2]) {
          const int64_t offset =
              (td.offset - low_[0]) * plane_ + (th.offset - low_[1]) * row_ + (tw.offset - low_[2]) * point_;
          part.elements += from_group();
          if (Stretch* last = part.stretches.empty() ? nullptr : &part.stretches.back();
              join && last && &tw != part.taps[2].data() && last->offset + last->length == offset)
            last->length += from_group();
          else
            part.stretches.push_back({offset, from_group()});
        }
    if (own_each_ || c_.kind == Kind::weight_gradient) return;
    std::vector<Stretch> cut;
    int64_t in_block = 0;
    for (const Stretch& s : part.stretches) {
      const int64_t pieces = (s.length + kLongestSum - 1) / kLongestSum;
      for (int64_t i = 0; i < pieces; ++i) {
        const int64_t begin = s.length * i / pieces, length = s.length * (i + 1) / pieces - begin;
        if (in_block > 0 && in_block + length > kLongestSum) {
          part.blocks.push_back(static_cast<int64_t>(cut.size()));
          in_block = 0;
        }
        cut.push_back({s.offset + begin, length});
        in_block += length;
      }
    }
    part.blocks.push_back(static_cast<int64_t>(cut.size()));
    part.stretches = std::move(cut);
  }

  // A panel has a row for each tap and channel of the source, a column for each channel of the result; the weight is
  // (out channels, in channels of a group, kernel...). Read straight, each element would come from a cache line of its
  // own, so blocks of the source's channels are turned as matrices with all their taps.
  //
  // f(first channel of the source, how many, the weight's element of the first channels, the step from one channel of
  // the result to the next, from one of the source) for all blocks.
  template <class F>
  void for_blocks(int64_t group, int64_t panel, const F& f) const {
    const bool back = c_.kind == Kind::input_gradient;
    const int64_t volume = kernel_volume(), out_step = c_.in_channels / c_.groups * volume;
    const int64_t from_step = back ? out_step : volume, to_step = back || own_each_ ? volume : out_step;
    const int64_t start = group * (c_.out_channels / groups_) * out_step + panel * width() * to_step;
    for (int64_t i = 0; i < from_group(); i += kChannelsTurned)
      f(i, std::min(kChannelsTurned, from_group() - i), start + i * from_step, to_step, from_step);
  }
  // f(row of the panel, tap of the kernel) for the first channel of the source.
  template <class F>
  void for_taps(const Part& part, const F& f) const {
    int64_t row = 0;
    for (const Tap& td : part.taps[0])
      for (const Tap& th : part.taps[1])
        for (const Tap& tw : part.taps[2]) {
          f(row, (td.which * c_.kernel[1] + th.which) * c_.kernel[2] + tw.which);
          row += from_group();
        }
  }
  int64_t kernel_volume() const { return c_.kernel[0] * c_.kernel[1] * c_.kernel[2]; }
  int64_t panel_channels(int64_t panel) const { return std::min(width(), to_group() - panel * width()); }
  void pack_panel(const Part& part, int64_t group, int64_t panel, const float* weight, float* to) const {
    const int64_t count = panel_channels(panel), volume = kernel_volume();
    if (count < width()) std::fill_n(to, part.elements * width(), 0.0f);
    std::vector<float> turned(static_cast<size_t>(kChannelsTurned * volume * count));
    for_blocks(group, panel, [&](int64_t first, int64_t channels, int64_t place, int64_t to_step, int64_t from_step) {
      turn(turned.data(), count, weight + place, to_step, from_step, count, channels, volume);
      for_taps(part, [&](int64_t row, int64_t tap) {
        for (int64_t i = 0; i < channels; ++i)
          std::copy_n(turned.data() + (i * volume + tap) * count, count, to + (row + first + i) * width());
      });
    });
  }
  void unpack_panel(const Part& part, int64_t group, int64_t panel, const float* sums, float* weight) const {
    const int64_t count = panel_channels(panel), volume = kernel_volume();
    std::vector<float> turned(static_cast<size_t>(kChannelsTurned * volume * count));
    for_blocks(group, panel, [&](int64_t first, int64_t channels, int64_t place, int64_t to_step, int64_t) {
      for_taps(part, [&](int64_t row, int64_t tap) {
        for (int64_t i = 0; i < channels; ++i)
          std::copy_n(sums + (row + first + i) * width(), count, turned.data() + (i * volume + tap) * count);
      });
      transpose_matrix(reinterpret_cast<uint32_t*>(weight + place), to_step,
                       reinterpret_cast<const uint32_t*>(turned.data()), count, channels * volume, count);
    });
  }
  // to[(channel of the source, tap)][channel of the result], with lines of `count`.
  static void turn(float* to, int64_t line, const float* from, int64_t to_step, int64_t from_step, int64_t count,
                   int64_t channels, int64_t volume) {
    const bool joined = from_step == volume;  // the taps of one channel are followed by those of the next
    for (int64_t i = 0; i < (joined ? 1 : channels); ++i)
      transpose_matrix(reinterpret_cast<uint32_t*>(to) + i * volume * line, line,
                       reinterpret_cast<const uint32_t*>(from + i * from_step), to_step, count,
                       joined ? channels * volume : volume);
  }

  // f(windows) for all blocks of rows of results.
  template <class F>
  void for_windows(const float* from, float* memory, const F& f) const {
    const int64_t of_image = source_[0] * source_[1] * source_[2] * from_;
    for (int64_t image = 0; image < c_.images; image += together_)
      for (int64_t plane = 0; plane < grid_[0]; ++plane)
        for (int64_t row = 0; row < grid_[1]; row += rows_) {
          const int64_t corner[3] = {plane * step_[0] + low_[0], row * step_[1] + low_[1], low_[2]};
          Windows w{image,        std::min(together_, c_.images - image), plane,
                    row,          std::min(rows_, grid_[1] - row),        memory,
                    window_size()};
          if (copies_) {
            for (int64_t i = 0; i < w.images; ++i)
              copy_window(from + (image + i) * of_image, corner, memory + i * w.step);
          } else {
            w.data = from + image * of_image + corner[0] * plane_ + corner[1] * row_ + corner[2] * point_;
            w.step = of_image;
          }
          f(w);
        }
  }
  void copy_window(const float* from, const int64_t* corner, float* to) const {
    const int64_t before = std::clamp<int64_t>(-corner[2], 0, window_[2]);
    const int64_t after = std::clamp<int64_t>(corner[2] + window_[2] - source_[2], 0, window_[2] - before),
                  inside = window_[2] - before - after;
    for (int64_t d = 0; d < window_[0]; ++d)
      for (int64_t h = 0; h < window_[1]; ++h, to += row_) {
        const int64_t y = corner[0] + d, x = corner[1] + h;
        if (y < 0 || y >= source_[0] || x < 0 || x >= source_[1] || inside == 0) {
          std::fill_n(to, row_, 0.0f);
          continue;
        }
        const float* line = from + ((y * source_[1] + x) * source_[2] + corner[2] + before) * from_;
        std::fill_n(to, before * point_, 0.0f);
        copy_points(line, from_, inside, to + before * point_, point_);
        std::fill_n(to + (before + inside) * point_, after * point_, 0.0f);
      }
  }
  // Points of `channels` each, with zeros up to `whole`.
  static void copy_points(const float* from, int64_t from_step, int64_t count, float* to, int64_t whole) {
    if (from_step == whole) {
      std::copy_n(from, count * whole, to);
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(from + i * from_step, from_step, to + i * whole);
      std::fill_n(to + i * whole + from_step, whole - from_step, 0.0f);
    }
  }

  // How many panels are worth a thread, where this convolution has several.
  int64_t panels_of_thread(const Part& part, const Windows& w) const {
    const double work =
        2.0 * static_cast<double>(w.images * w.rows * part.count[2]) * static_cast<double>(part.elements * width());
    return std::max<int64_t>(1, static_cast<int64_t>(kWorkOfThread / std::max(work, 1.0)));
  }

  void run_part(const Part& part, const Windows& windows, const float* filter, const float* bias, float* to,
                int64_t rows) const {
    for (int64_t group = 0; group < groups_; ++group)
      parallel_for(panels_, panels_of_thread(part, windows), [&](int64_t first, int64_t last) {
        run_panels(part, windows, group, first, last, filter, bias, to, rows);
      });
  }
  void run_panels(const Part& part, const Windows& windows, int64_t group, int64_t first, int64_t last,
                  const float* filter, const float* bias, float* to, int64_t rows) const {
    const int64_t image_step = result_place(1, 0, 0, 0);
    DirectRow r;
    r.from_step = step_[2] * point_;
    r.vectors = vectors_;
    r.to_step = result_step_[2] * to_;
    for (int64_t w = 0; w < part.count[2]; w += kPointsTogether) {
      r.points = std::min(kPointsTogether, part.count[2] - w);
      int64_t begin = 0, done = 0;
      for (const int64_t end : part.blocks) {
        r.first = part.stretches.data() + begin;
        r.last = part.stretches.data() + end;
        r.adds = begin > 0;
        for (int64_t panel = first; panel < last; ++panel) {
          r.channels = std::min(width(), to_group() - panel * width());
          r.filter = filter + place_of(part, group * panels_ + panel) + done * width();
          r.bias = bias && begin == 0 ? bias + (group * panels_ + panel) * width() : nullptr;
          for (int64_t i = 0; i < windows.images; ++i)
            for (int64_t h = 0; h < rows; ++h) {
              r.from = windows.data + i * windows.step + h * step_[1] * row_ + w * r.from_step + group * from_group();
              r.to = to + i * image_step + h * result_step_[1] * result_[2] * to_ + w * r.to_step + group * to_group() +
                     panel * width();
              kernels().row(r);
            }
        }
        for (int64_t i = begin; i < end; ++i) done += part.stretches[static_cast<size_t>(i)].length;
        begin = end;
      }
    }
  }
  void run_channels(const Part& part, const float* window, const float* filter, const float* bias, float* to,
                    int64_t rows) const {
    DirectChannels r{rows,
                     part.count[2],
                     to_,
                     width(),
                     window,
                     step_[1] * row_,
                     step_[2] * point_,
                     part.stretches.data(),
                     part.stretches.data() + part.stretches.size(),
                     filter + part.filter,
                     bias,
                     to,
                     result_step_[1] * result_[2] * to_,
                     result_step_[2] * to_,
                     nullptr};
    kernels().channels(r);
  }

  void add_sums(const Part& part, const float* grad, const Windows& windows, int64_t points, float* sums) const {
    parallel_for(groups_ * panels_, panels_of_thread(part, windows), [&](int64_t first, int64_t last) {
      std::vector<float> grads(static_cast<size_t>(windows.images * grads_size()));
      for (int64_t i = first; i < last; ++i) add_sums_of_panel(part, i, grad, windows, points, grads.data(), sums);
    });
  }
  void add_sums_of_panel(const Part& part, int64_t which, const float* grad, const Windows& windows, int64_t points,
                         float* grads, float* sums) const {
    const int64_t group = which / panels_, first = which % panels_ * width(),
                  channels = panel_channels(which % panels_);
    const int64_t image_step = result_place(1, 0, 0, 0);
    for (int64_t i = 0; i < windows.images; ++i)
      for (int64_t h = 0; h < windows.rows; ++h)
        for (int64_t p = 0; p < points; ++p) {
          float* const place = grads + i * grads_size() + (h * points + p) * width();
          std::copy_n(grad + i * image_step + (h * result_[2] + p) * to_ + group * to_group() + first, channels, place);
          std::fill_n(place + channels, width() - channels, 0.0f);
        }
    if (own_each_) {
      DirectChannels s{windows.rows,
                       points,
                       to_,
                       width(),
                       windows.data,
                       step_[1] * row_,
                       step_[2] * point_,
                       part.stretches.data(),
                       part.stretches.data() + part.stretches.size(),
                       nullptr,
                       nullptr,
                       sums,
                       0,
                       0,
                       grads};
      kernels().channel_sums(s);
      return;
    }
    float* to = sums + place_of(part, which);
    for (const Stretch& stretch : part.stretches) {
      for (int64_t i = 0; i < windows.images; ++i) {
        DirectSums s{windows.rows,
                     points,
                     stretch.length,
                     windows.data + i * windows.step + stretch.offset + group * from_group(),
                     step_[1] * row_,
                     step_[2] * point_,
                     grads + i * grads_size(),
                     vectors_,
                     to};
        kernels().sums(s);
      }
      to += stretch.length * width();
    }
  }
};

}  // namespace

bool direct_does(const ConvolutionSizes& c) {
  const int64_t results = (c.kind == ConvolutionKind::input_gradient ? c.in_channels : c.out_channels) / c.groups;
  return is_own_filter_each(c) || results >= kLeastChannels;
}

std::shared_ptr<const ConvolutionKernel> direct_convolution(const ConvolutionSizes& c) {
  return std::make_shared<const DirectConvolution>(c);
}

}  // namespace cresset
