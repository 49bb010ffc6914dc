#include "cuda/many.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/error.h"

namespace cresset::cuda {
namespace {

constexpr int kBlock = 256;
constexpr int kRows = 16;

// Kernels take parameters of 4 KB, since CUDA 12.1 of 32764 bytes. The small table is quicker to send.
constexpr int64_t kSmallBytes = 4096, kLargeBytes = 32764;

bool takes_large_parameters() {
  static const bool takes = [] {
    int version = 0;
    return driver().cuDriverGetVersion(&version) == kSuccess && version >= 12010;
  }();
  return takes;
}

// The bytes of struct Table in many_table.cuh, filled target by target.
class Table {
 public:
  Table(const ManyProgram& p, int64_t bytes) : lists_(p.lists), numbers_(p.numbers), singles_(p.singles) {
    fixed_ = 32 + int64_t{kRows} * numbers_ * 8;
    const int64_t each = 8 * (lists_ + 1 + singles_) + 4 + 2;
    capacity_ = (bytes - fixed_) / each / 4 * 4;
    bytes_.resize(static_cast<size_t>(fixed_ + capacity_ * each + 8));
  }
  int64_t capacity() const { return capacity_; }
  int64_t targets() const { return targets_; }
  int64_t blocks() const { return blocks_; }
  std::span<const char> bytes() const { return bytes_; }

  void begin(const char* scale, const char* found, int64_t chunk) {
    chunk_ = chunk;
    targets_ = blocks_ = rows_ = 0;
    put(0, scale);
    put(8, found);
    put(16, chunk);
  }
  // False: the table is full.
  bool add(const ManyTarget& t) {
    if (targets_ == capacity_) return false;
    const int row = find_row(t.numbers);
    if (row < 0) return false;
    for (int i = 0; i < lists_; ++i) put(fixed_ + (i * capacity_ + targets_) * 8, t.tensors[i]);
    const int64_t counts = fixed_ + lists_ * capacity_ * 8, singles = counts + capacity_ * 8,
                  first_blocks = singles + singles_ * capacity_ * 8, rows = first_blocks + capacity_ * 4;
    put(counts + targets_ * 8, t.count);
    for (int i = 0; i < singles_; ++i) put(singles + (i * capacity_ + targets_) * 8, t.singles[i]);
    put(first_blocks + targets_ * 4, static_cast<uint32_t>(blocks_));
    put(rows + targets_ * 2, static_cast<uint16_t>(row));
    blocks_ += divide_up(t.count, chunk_);
    put(24, ++targets_);
    return true;
  }

 private:
  template <class T>
  void put(int64_t at, const T& value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  int find_row(const double* numbers) {
    const auto bytes = static_cast<size_t>(numbers_) * 8;
    for (int r = rows_ - 1; r >= 0; --r)
      if (std::memcmp(bytes_.data() + 32 + static_cast<size_t>(r) * bytes, numbers, bytes) == 0) return r;
    if (rows_ == kRows) return -1;
    std::memcpy(bytes_.data() + 32 + static_cast<size_t>(rows_) * bytes, numbers, bytes);
    return rows_++;
  }

  int lists_, numbers_, singles_, rows_ = 0;
  int64_t fixed_, capacity_, chunk_ = 1, targets_ = 0, blocks_ = 0;
  std::vector<char> bytes_;
};

struct Known {
  std::mutex lock;
  std::unordered_map<std::string, Kernel*> kernels;
};

Kernel& find_kernel(const ManyProgram& p, const Place& place, const char* entry, int64_t capacity) {
  static auto* known = new Known;
  const std::string key = join(p.key, '|', entry, '|', capacity, '|', place.device);
  std::lock_guard guard(known->lock);
  if (const auto found = known->kernels.find(key); found != known->kernels.end()) return *found->second;
  std::vector<std::string> options = p.options;
  const int unroll = p.lists <= 3 ? 4 : 2;
  for (const auto& [name, value] : {std::pair<const char*, int64_t>{"LISTS", p.lists},
                                    {"NUMBERS", p.numbers},
                                    {"SINGLES", p.singles},
                                    {"CAPACITY", capacity},
                                    {"BLOCK", kBlock},
                                    {"VECTOR", p.vector},
                                    {"UNROLL", unroll}})
    options.push_back(join("-D", name, '=', value));
  const std::string text =
      join("#include \"many_table.cuh\"\n", p.text ? p.text(p.context) : std::string(), "#include \"", p.file, "\"\n");
  Kernel& kernel = load_kernel(place.device, text, entry, options);
  known->kernels[key] = &kernel;
  return kernel;
}

// Some blocks for each multiprocessor, but no more than their start is worth.
int64_t chunk_of(const ManyProgram& program, const Place& place, const std::vector<ManyTarget>& targets) {
  int64_t total = 0;
  for (const ManyTarget& t : targets) total += t.count;
  const int64_t step = int64_t{kBlock} * program.vector,
                wanted = divide_up(total, int64_t{properties(place.device).multiprocessors} * 16);
  return std::clamp(divide_up(wanted, step) * step, step * 2, int64_t{1} << 16);
}

}  // namespace

int64_t count_blocks(const ManyProgram& program, const Place& place, const std::vector<ManyTarget>& targets) {
  const int64_t chunk = chunk_of(program, place, targets);
  int64_t blocks = 0;
  for (const ManyTarget& t : targets) blocks += divide_up(t.count, chunk);
  return blocks;
}

void launch_many(const ManyProgram& program, const Place& place, const std::vector<ManyTarget>& targets,
                 const char* entry, const char* after) {
  const int64_t chunk = chunk_of(program, place, targets);
  auto table = std::make_unique<Table>(program, kSmallBytes);
  if (static_cast<int64_t>(targets.size()) > table->capacity() && takes_large_parameters())
    table = std::make_unique<Table>(program, kLargeBytes);
  auto *scale = static_cast<const char*>(program.scale), *found = static_cast<const char*>(program.found);
  const auto send = [&] {
    const auto start = [&](const char* which, int64_t blocks) {
      launch_bytes(find_kernel(program, place, which, table->capacity()), place, blocks, kBlock, table->bytes());
    };
    if (table->blocks()) start(entry, table->blocks());
    if (after) start(after, divide_up(table->targets() * program.after_threads, kBlock));
    scale += table->targets() * program.scale_step;
    found += table->blocks() * program.found_step;
    table->begin(scale, found, chunk);
  };
  table->begin(scale, found, chunk);
  for (const ManyTarget& t : targets) {
    if (!table->add(t)) {
      send();
      table->add(t);
    }
  }
  if (table->targets()) send();
}

}  // namespace cresset::cuda
