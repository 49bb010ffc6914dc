#include "dispatch/tiles.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/parallel.h"
#include "dispatch/pointwise_call.h"
#include "tensor/convert.h"

namespace cresset {
namespace {

constexpr int64_t kLargeBytes = 2 << 20;  // more than the second-level cache
constexpr size_t kManySteps = 6;
constexpr int64_t kShortRow = 256;         // shorter ones are gathered, so that blocks are not cut too small
constexpr size_t kMostOperands = 48;       // of a printed function
constexpr int64_t kCacheBytes = 24 << 10;  // of the first-level cache, less what the loops need

// n times the same element.
void repeat(char* to, const char* element, int64_t n, int64_t width) {
  std::memcpy(to, element, static_cast<size_t>(width));
  for (int64_t done = 1; done < n; done *= 2)
    std::memcpy(to + done * width, to, static_cast<size_t>(std::min(done, n - done) * width));
}

// Memory for blocks, which a thread keeps.
class Blocks {
 public:
  char* of(int64_t bytes) {
    if (bytes > bytes_) {
      std::free(std::exchange(data_, nullptr));
      bytes_ = 0;
      data_ = static_cast<char*>(std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64)));
      if (!data_) throw std::bad_alloc();
      bytes_ = bytes;
    }
    return data_;
  }
  ~Blocks() { std::free(data_); }

 private:
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};
thread_local Blocks blocks_of_numbers, blocks_of_values;

// What a group reads from memory and writes there.
int64_t bytes_of(std::span<const TileResult> results) {
  std::vector<const char*> seen;
  int64_t width = 0;
  for (const TileResult& r : results) {
    if (r.memory) width += size_of(r.value->dtype);
    for (int i = 0; i < r.value->count; ++i) {
      const LateValue::Input& in = r.value->inputs[i];
      const char* const base = in.kind == LateValue::Input::number ? nullptr : memory_of(in);
      if (!base || !in.linear || std::find(seen.begin(), seen.end(), base) != seen.end()) continue;
      seen.push_back(base);
      width += size_of(in.dtype);
    }
  }
  return results[0].value->numel * width;
}

}  // namespace

Tiles::Place Tiles::new_block(int64_t width) {
  virtual_.push_back(width);
  width_ = std::max(width_, width);
  return {Place::block, static_cast<int32_t>(virtual_.size() - 1), nullptr, width};
}

Tiles::Place Tiles::number(const LateValue::Input& input) {
  const int64_t width = size_of(input.wanted);
  width_ = std::max(width_, width);
  for (size_t k = 0; k < constants_.size(); ++k)
    if (constants_[k].width == width && !std::memcmp(constants_[k].bytes, input.bytes, static_cast<size_t>(width)))
      return {Place::constant, static_cast<int32_t>(k), nullptr, width};
  Constant& c = constants_.emplace_back();
  std::memcpy(c.bytes, input.bytes, sizeof c.bytes);
  c.width = width;
  return {Place::constant, static_cast<int32_t>(constants_.size() - 1), nullptr, width};
}

// Whether the input is one row for all (a bias): it is read where it lies. Of rows of several lengths, the first
// counts.
bool Tiles::is_row(const LateValue& value, const LateValue::Input& input) {
  int64_t length = 1, d = value.sizes.size();
  for (; d > 0 && input.strides[d - 1] == length; --d) length *= value.sizes[d - 1];
  const bool repeats = std::all_of(input.strides.begin(), input.strides.begin() + d, [](int64_t s) { return s == 0; });
  if (!repeats || length < kShortRow || (row_ && row_ != length)) return false;
  row_ = length;
  return true;
}

// Elements from memory as the loop wants them: where they lie, or gathered and converted into a block.
Tiles::Place Tiles::load(const LateValue& value, const LateValue::Input& input, const char* base) {
  for (const Loaded& l : loaded_)
    if (l.base == base && l.input->dtype == input.dtype && l.input->wanted == input.wanted &&
        l.input->linear == input.linear &&
        (input.linear || (l.input->strides == input.strides && l.value->sizes == value.sizes)))
      return l.place;
  const int64_t width = size_of(input.dtype);
  Place place{Place::memory, 0, const_cast<char*>(base), width};
  if (!input.linear && is_row(value, input)) {
    place.kind = Place::row;
  } else if (!input.linear) {
    Step& gathers = steps_.emplace_back();
    gathers.kind = Step::gather;
    gathers.in[0] = place;
    gathers.count = 1;
    gathers.sizes = value.sizes;
    gathers.strides = input.strides;
    gathers.out = place = new_block(width);
  }
  if (input.dtype != input.wanted) {
    const Place made = new_block(size_of(input.wanted));
    Step& converts = steps_.emplace_back();
    converts.kind = Step::convert;
    converts.in[0] = place;
    converts.count = 1;
    converts.from = input.dtype;
    converts.to = input.wanted;
    converts.out = place = made;
  }
  loaded_.push_back({base, &value, &input, place});
  return place;
}

Tiles::Tiles(std::span<const TileResult> results, const Taker* taker) : taker_(taker), last_(results.back()) {
  elements_ = results[0].value->numel;
  large_ = exceeds_cache(bytes_of(results));
  steps_.reserve(2 * results.size() + 4);
  const Loop function = describe(results) ? group_->function() : nullptr;
  calls_ = static_cast<int64_t>(results.size());
  function ? add_printed(results, function) : add_loops(results);
}

// Where a result is made: in memory, in a block from which it is streamed, or where it is taken.
Tiles::Place Tiles::result_place(const TileResult& result) {
  const int64_t width = size_of(result.value->dtype);
  const bool taken = taker_ && result.value == last_.value, streams = !taken && large_;
  if (result.memory && !streams) return {Place::memory, 0, result.memory, width};
  if (!taken) return new_block(width);
  width_ = std::max(width_, width);
  return {Place::taken, 0, nullptr, width};
}

void Tiles::add_stream(const Place& from, char* memory) {
  if (!memory || from.kind != Place::block) return;
  Step& goes = steps_.emplace_back();
  goes.kind = Step::stream;
  goes.in[0] = from;
  goes.count = 1;
  goes.out = {Place::memory, 0, memory, from.width};
  streams_ = true;
}

// Finds the group among those of its kind, by the text that cresset/compiler/printing.py reads: a line a call with
// its name, the gradient it is (-1: none), its type, and its operands: memory, numbers, values of lines before. False:
// it cannot be printed.
bool Tiles::describe(std::span<const TileResult> results) {
  const auto type = [](Dtype d) {
    return d == Dtype::f32 ? " f32" : d == Dtype::f64 ? " f64" : d == Dtype::b8 ? " b8" : nullptr;
  };
  std::string key;
  std::vector<Place> numbers;
  const auto add_index = [&](char kind, size_t index, const char* of_type) {
    key += ' ', key += kind, key += std::to_string(index), key += of_type + 1;
  };
  for (size_t k = 0; k < results.size(); ++k) {
    const LateValue& v = *results[k].value;
    if (!v.loop || v.made != v.dtype || !type(v.dtype)) return false;
    key += results[k].memory || (taker_ && &v == last_.value) ? "keep " : "pass ";
    key += v.op->name(), key += ' ', key += std::to_string(v.which), key += type(dtype_of_compute(v.compute));
    for (int i = 0; i < v.count; ++i) {
      const LateValue::Input& in = v.inputs[i];
      const char* const of_type = type(in.wanted);
      if (!of_type || (in.kind != LateValue::Input::number && in.dtype != in.wanted)) return false;
      if (in.kind == LateValue::Input::number) {
        add_index('n', numbers.size(), of_type);
        numbers.push_back(Place{Place::memory, 0, const_cast<char*>(in.bytes), 0});
      } else if (in.kind == LateValue::Input::memory || in.from->state == LateValue::done) {
        const Place place = load(v, in, memory_of(in));
        const auto index = std::find(operands_.begin(), operands_.end(), place) - operands_.begin();
        if (index == std::ssize(operands_)) operands_.push_back(place);
        add_index('m', static_cast<size_t>(index), of_type);
      } else {
        size_t from = 0;
        while (results[from].value != in.from.get()) ++from;
        add_index('v', from, of_type);
      }
    }
    key += '\n';
    attributes_.insert(attributes_.end(), v.attributes, v.attributes + kMaxPointwiseInputs);
  }
  operands_.insert(operands_.end(), numbers.begin(), numbers.end());
  if (operands_.size() + results.size() > kMostOperands) return false;
  group_ = &printed_group(key);
  return true;
}

void Tiles::add_printed(std::span<const TileResult> results, Loop function) {
  printed_ = true;
  std::vector<Place> made;
  for (const TileResult& r : results)
    if (r.memory || (taker_ && r.value == last_.value)) made.push_back(result_place(r));
  operands_.insert(operands_.begin(), made.begin(), made.end());
  Step& runs = steps_.emplace_back();
  runs.kind = Step::printed;
  runs.function = function;
  runs.attributes = attributes_.data();
  size_t k = 0;
  for (const TileResult& r : results)
    if (r.memory) add_stream(made[k++], r.memory);
  slots_ = static_cast<int64_t>(virtual_.size());
}

void Tiles::add_loops(std::span<const TileResult> results) {
  std::vector<Place> at(results.size());  // where each value is found, in its dtype
  const auto place_of = [&](const LateValue* v) {
    for (size_t k = 0; k < results.size(); ++k)
      if (results[k].value == v) return at[k];
    return Place{};
  };
  const auto convert = [&](const Place& from, Dtype dtype, Dtype to, const Place& made) {
    Step& converts = steps_.emplace_back();
    converts.kind = Step::convert;
    converts.in[0] = from;
    converts.count = 1;
    converts.from = dtype;
    converts.to = to;
    converts.out = made;
    return made;
  };
  for (size_t k = 0; k < results.size(); ++k) {
    const LateValue& v = *results[k].value;
    Step runs;
    runs.function = v.loop;
    runs.attributes = v.attributes;
    runs.count = v.count;
    for (int i = 0; i < v.count; ++i) {
      const LateValue::Input& input = v.inputs[i];
      Place& in = runs.in[i];
      if (input.kind == LateValue::Input::number) {
        in = number(input);
      } else if (const char* base = memory_of(input)) {
        in = load(v, input, base);
      } else {
        in = place_of(input.from.get());
        if (input.dtype != input.wanted) in = convert(in, input.dtype, input.wanted, new_block(size_of(input.wanted)));
      }
    }
    if (v.placed) {
      runs.kind = Step::placed;
      runs.work = v.placed.get();
      runs.out = at[k] = result_place(results[k]);
      steps_.push_back(runs);
    } else if (!v.loop) {
      at[k] = convert(runs.in[0], v.inputs[0].dtype, v.dtype, result_place(results[k]));
    } else {
      const bool converts = v.made != v.dtype;
      runs.out = at[k] = converts ? new_block(size_of(v.made)) : result_place(results[k]);
      steps_.push_back(runs);
      if (converts) at[k] = convert(runs.out, v.made, v.dtype, result_place(results[k]));
    }
    add_stream(at[k], results[k].memory);
  }
  assign_blocks();
}

// Blocks take the place of those that nobody reads any more.
void Tiles::assign_blocks() {
  std::vector<int32_t> last(virtual_.size(), -1);
  for (size_t s = 0; s < steps_.size(); ++s)
    for (int i = 0; i < steps_[s].count; ++i)
      if (steps_[s].in[i].kind == Place::block)
        last[static_cast<size_t>(steps_[s].in[i].index)] = static_cast<int32_t>(s);
  std::vector<int32_t> slot(virtual_.size(), -1), free;
  for (size_t s = 0; s < steps_.size(); ++s) {
    Step& step = steps_[s];
    int32_t dying[kMaxOperands];
    int dead = 0;
    for (int i = 0; i < step.count; ++i) {
      if (step.in[i].kind != Place::block) continue;
      const auto block = static_cast<size_t>(step.in[i].index);
      step.in[i].index = slot[block];
      // A loop may write over what it reads where the elements are as wide.
      if (last[block] != static_cast<int32_t>(s) || slot[block] < 0) continue;
      last[block] = -2;
      if (step.kind == Step::loop && step.in[i].width == step.out.width)
        free.push_back(slot[block]);
      else
        dying[dead++] = slot[block];
    }
    if (step.out.kind == Place::block && step.kind != Step::stream) {
      const auto block = static_cast<size_t>(step.out.index);
      if (free.empty()) free.push_back(static_cast<int32_t>(slots_++));
      slot[block] = free.back();
      free.pop_back();
      step.out.index = slot[block];
      if (last[block] == -1) dying[dead++] = slot[block];  // nobody reads it
    }
    free.insert(free.end(), dying, dying + dead);
  }
}

// While a long list of loops works on one block the processor forgets where it was reading: the next block is asked for
// before it. (Twelve operators on 2 M elements with two threads: 2.06 ms instead of 2.24.)
void Tiles::read_ahead(std::span<const Place> from, int64_t at, int64_t n) {
  for (const Place& p : from) cresset::read_ahead(p.base + at * p.width, n * p.width);
}

void Tiles::run() {
  const auto start = std::chrono::steady_clock::now();
  run_blocks();
  if (!group_) return;
  const auto taken = std::chrono::steady_clock::now() - start;
  group_->note(std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count(), elements_, printed_);
}

void Tiles::run_blocks() {
  // All that a block needs stays in the first-level cache.
  std::vector<Place> streams;
  for (const Step& s : steps_)
    for (int i = 0; i < s.count; ++i)
      if (s.in[i].kind == Place::memory && s.kind != Step::gather && s.kind != Step::stream &&
          std::none_of(streams.begin(), streams.end(), [&](const Place& p) { return p.base == s.in[i].base; }))
        streams.push_back(s.in[i]);
  const auto places = slots_ + static_cast<int64_t>(constants_.size() + streams.size());
  const int64_t fitting = kCacheBytes / (std::max<int64_t>(places, 1) * width_) / 64 * 64;
  // A single loop over memory needs no blocks but those that threads share.
  const bool plain = slots_ == 0 && constants_.empty();
  const int64_t most = taker_ ? std::min(elements_, taker_->unit) : elements_;
  int64_t block = std::min(most, plain ? 16 * kBlock : std::clamp<int64_t>(fitting, 256, kBlock));
  if (row_) {  // a row in parts of one length
    const int64_t parts = (row_ + block - 1) / block;
    block = std::min(block, ((row_ + parts - 1) / parts + 63) / 64 * 64);
  }
  const bool reads_ahead = steps_.size() >= kManySteps && elements_ * width_ >= kLargeBytes;
  const int64_t bytes = block * width_;
  char* const constants = blocks_of_numbers.of(std::max<int64_t>(bytes * static_cast<int64_t>(constants_.size()), 64));
  for (size_t k = 0; k < constants_.size(); ++k)
    repeat(constants + bytes * static_cast<int64_t>(k), constants_[k].bytes, block, constants_[k].width);
  // Threads share out rows where they are not much longer than blocks, so that ends of both do not cut each other.
  const int64_t unit = taker_                        ? taker_->unit
                       : row_ && row_ <= 16 * kBlock ? row_
                                                     : block,
                units = (elements_ + unit - 1) / unit;
  const int64_t grain = std::max<int64_t>(1, kParallelGrain / unit / calls_);
  const int64_t width = size_of(last_.value->dtype);
  LongWork work(elements_ * calls_);
  parallel_for(units, grain, [&](int64_t first, int64_t last) {
    const int64_t own = (bytes * slots_ + 63) / 64 * 64;
    char* const space = blocks_of_values.of(std::max<int64_t>(own + (taker_ ? unit * width : 0), 64));
    for (int64_t at = first * unit, end, n; at < std::min(last * unit, elements_); at += n) {
      const int64_t begin = at / unit * unit;
      end = std::min(begin + unit, elements_);
      n = std::min(block, end - at);
      if (row_) n = std::min(n, row_ - at % row_);
      const auto find = [&](const Place& p) {
        return p.kind == Place::block    ? space + bytes * p.index
               : p.kind == Place::memory ? p.base + at * p.width
               : p.kind == Place::row    ? p.base + at % row_ * p.width
               : p.kind == Place::taken  ? space + own + (at - begin) * p.width
                                         : constants + bytes * p.index;
      };
      if (reads_ahead) read_ahead(streams, at + block, block);
      for (const Step& s : steps_) {
        switch (s.kind) {
          case Step::loop: {
            char* p[1 + kMaxOperands];
            p[0] = find(s.out);
            for (int i = 0; i < s.count; ++i) p[1 + i] = find(s.in[i]);
            s.function(p, s.attributes, n);
            break;
          }
          case Step::placed: {
            char* p[kMaxOperands];
            for (int i = 0; i < s.count; ++i) p[i] = find(s.in[i]);
            s.work->run(find(s.out), p, at, n);
            break;
          }
          case Step::gather: gather(find(s.out), s.in[0].base, s.sizes, s.strides, at, n, s.in[0].width); break;
          case Step::convert: converter(s.from, s.to)(find(s.in[0]), find(s.out), n); break;
          case Step::printed: {
            char* p[kMostOperands];
            for (size_t i = 0; i < operands_.size(); ++i) p[i] = find(operands_[i]);
            s.function(p, s.attributes, n);
            break;
          }
          case Step::stream: stream(find(s.out), find(s.in[0]), n * s.out.width); break;
        }
      }
      if (taker_ && at + n == end)
        taker_->take(taker_->self, last_.memory ? last_.memory + begin * width : space + own, begin, end - begin);
    }
    if (streams_) end_stream();
  });
}

}  // namespace cresset
