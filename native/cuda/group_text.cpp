#include "cuda/group_text.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "cuda/launch.h"
#include "cuda/printed.h"
#include "dispatch/pointwise.h"
#include "tensor/blocks.h"

namespace cresset::cuda {
namespace {

constexpr size_t kMostBytes = 4000;  // of a kernel's parameters
constexpr const char* kComputeNames[kComputes] = {"f32", "f64", "i64", "u64", "b8", "c64", "c128"};

std::string type_of(Dtype d) { return join("dtype_", tag_of(d)); }

template <class T>
void put(std::vector<char>& to, const T& value) {
  static_assert(sizeof(T) % 8 == 0);
  const auto* from = reinterpret_cast<const char*>(&value);
  to.insert(to.end(), from, from + sizeof(T));
}

}  // namespace

GroupText::GroupText(std::span<const TileResult> results, int64_t row, int vector, std::span<const uint64_t> extra)
    : extra_(extra.size()) {
  count_ = results[0].value->numel;
  big_ = count_ >= int64_t{1} << 31;
  read(results);
  for (Walk& w : walks_) {
    Dims linear = contiguous_strides(w.given);  // the order in which the elements are walked
    Dims* strides[kMaxOperands * 4] = {&linear};
    int count = 1;
    for (const int o : w.operands)
      if (count < kMaxOperands * 4) strides[count++] = &operands_[static_cast<size_t>(o)].strides;
    fits_ &= count == 1 + static_cast<int>(w.operands.size());
    w.sizes = w.given;
    if (fits_) coalesce(w.sizes, strides, count);
    if (w.sizes.empty()) {
      w.sizes.push_back(1);
      for (const int o : w.operands) operands_[static_cast<size_t>(o)].strides.push_back(0);
    }
    for (int64_t d = 1; d < w.sizes.size(); ++d) fits_ &= w.sizes[d] < int64_t{1} << 31;
  }
  choose_vector(row, vector);
  put_parameters(extra);
  fits_ &= bytes_.size() <= kMostBytes;
  sign();
}

int GroupText::add_operand(const LateValue& v, const LateValue::Input& in) {
  char* const base = memory_of(in);
  int walk = -1;
  if (!in.linear) {
    for (size_t w = 0; w < walks_.size() && walk < 0; ++w)
      if (walks_[w].given == v.sizes) walk = static_cast<int>(w);
    if (walk < 0) {
      walk = static_cast<int>(walks_.size());
      walks_.push_back({v.sizes, {}, {}});
    }
  }
  for (size_t o = 0; o < operands_.size(); ++o) {
    const Operand& other = operands_[o];
    if (other.base == base && other.dtype == in.dtype && other.walk == walk &&
        (walk < 0 || other.strides == in.strides))
      return static_cast<int>(o);
  }
  operands_.push_back({base, in.dtype, walk, in.linear ? Dims() : in.strides});
  const int index = static_cast<int>(operands_.size()) - 1;
  if (walk >= 0) walks_[static_cast<size_t>(walk)].operands.push_back(index);
  return index;
}

void GroupText::read(std::span<const TileResult> results) {
  const auto place_of = [&](const LateValue* v) {
    for (size_t k = 0; k < results.size(); ++k)
      if (results[k].value == v) return static_cast<int>(k);
    return -1;
  };
  for (const TileResult& r : results) {
    const LateValue& v = *r.value;
    Step step{&v, -1, static_cast<int>(attributes_.size()), {}};
    for (int i = 0; i < v.count; ++i) {
      const LateValue::Input& in = v.inputs[i];
      if (in.kind == LateValue::Input::number) {
        Slot s;
        std::memcpy(s.bytes, in.bytes, sizeof s.bytes);
        slots_.push_back(s);
        step.arguments.push_back({Argument::number, static_cast<int>(slots_.size()) - 1, in.wanted});
      } else if (in.kind == LateValue::Input::value && in.from->state != LateValue::done) {
        step.arguments.push_back({Argument::value, place_of(in.from.get()), in.dtype});
      } else {
        step.arguments.push_back({Argument::operand, add_operand(v, in), in.dtype});
      }
    }
    if (v.loop && v.op->pointwise)
      attributes_.insert(attributes_.end(), v.attributes, v.attributes + v.op->pointwise->scalar_count);
    if (r.memory) {
      Slot s{};
      std::memcpy(s.bytes, &r.memory, sizeof r.memory);
      slots_.push_back(s);
      step.output = static_cast<int>(slots_.size()) - 1;
    }
    steps_.push_back(std::move(step));
  }
}

bool GroupText::is_aligned(const void* p, int64_t width, int vector) const {
  return reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(std::min<int64_t>(16, width * vector)) == 0;
}

// As many elements as make accesses of 16 bytes, and 32 for the widest dtype; fewer for long groups, which have a copy
// of every formula for each.
void GroupText::choose_vector(int64_t row, int wanted) {
  int64_t widest = 1, narrowest = 16;
  const auto see = [&](Dtype d) { widest = std::max(widest, size_of(d)), narrowest = std::min(narrowest, size_of(d)); };
  for (const Operand& o : operands_)
    if (o.walk < 0) see(o.dtype);
  for (const Step& s : steps_)
    if (s.output >= 0) see(s.value->dtype);
  int vector = wanted ? wanted : static_cast<int>(std::min(32 / widest, 16 / narrowest));
  if (!wanted && steps_.size() > 16) vector = std::min(vector, steps_.size() > 48 ? 2 : 4);
  const auto works = [&](int n) {
    if (count_ % n || (row && row % n)) return false;
    for (const Operand& o : operands_)
      if (o.walk < 0 && !is_aligned(o.base, size_of(o.dtype), n)) return false;
    for (const Walk& w : walks_)
      if (w.sizes.back() % n) return false;
    return true;
  };
  while (vector > 1 && !works(vector)) vector /= 2;
  vector_ = std::max(vector, 1);
  if (wanted) fits_ &= vector_ == wanted;
  for (Operand& o : operands_) {
    if (o.walk < 0) continue;
    bool whole = o.strides.back() == 1 && is_aligned(o.base, size_of(o.dtype), vector_);
    for (int64_t d = 0; d + 1 < o.strides.size(); ++d) whole &= o.strides[d] % vector_ == 0;
    o.how = o.strides.back() == 0 ? Operand::repeated : whole ? Operand::vectors : Operand::gathered;
  }
}

void GroupText::put_parameters(std::span<const uint64_t> extra) {
  put(bytes_, count_);
  for (const Operand& o : operands_) {
    char slot[16] = {};
    std::memcpy(slot, &o.base, sizeof o.base);
    bytes_.insert(bytes_.end(), slot, slot + sizeof slot);
  }
  for (const Slot& s : slots_) bytes_.insert(bytes_.end(), s.bytes, s.bytes + sizeof s.bytes);
  for (const ScalarAttribute& a : attributes_) put(bytes_, a);
  for (const Walk& w : walks_)
    for (const int64_t s : w.sizes) put(bytes_, Divider(s));
  for (const Walk& w : walks_)
    for (const int o : w.operands)
      for (const int64_t s : operands_[static_cast<size_t>(o)].strides) put(bytes_, s);
  for (const uint64_t word : extra) put(bytes_, word);
}

void GroupText::sign() {
  const auto add = [&](auto value) { signature_.append(reinterpret_cast<const char*>(&value), sizeof value); };
  add(static_cast<uint8_t>(vector_));
  add(static_cast<uint8_t>(big_));
  for (const Walk& w : walks_) add(static_cast<uint8_t>(w.sizes.size()));
  add(uint8_t{255});
  for (const Operand& o : operands_) {
    add(static_cast<uint8_t>(o.dtype));
    add(static_cast<int8_t>(o.walk));
    add(static_cast<uint8_t>(o.how));
  }
  for (const Step& s : steps_) {
    add(s.value->loop || s.value->rows ? s.value->op : nullptr);
    add(static_cast<int8_t>(s.value->which));
    add(static_cast<uint8_t>(s.value->compute));
    add(static_cast<uint8_t>(s.value->dtype));
    add(static_cast<uint8_t>(s.output >= 0));
    for (const Argument& a : s.arguments) {
      add(static_cast<uint8_t>(a.kind));
      add(static_cast<uint8_t>(a.dtype));
      add(static_cast<uint16_t>(a.index));
    }
  }
}

// ---------------------------------------------------------------- text

std::string GroupText::beginning() const {
  std::string includes = "#include \"slots.cuh\"\n", formulas;
  std::map<std::string, bool> printed;
  for (const Step& s : steps_) {
    const LateValue& v = *s.value;
    if (!v.loop) continue;
    const std::string name =
        join("formula_", v.op->pointwise->name, "_", v.which < 0 ? std::string("forward") : std::to_string(v.which),
             "_", kComputeNames[static_cast<int>(v.compute)]);
    if (!printed.emplace(name, true).second) continue;
    const std::string text = formula_text(v.op->pointwise->name, v.which, kComputeNames[static_cast<int>(v.compute)]);
    formulas += join("namespace ", name, " {\n");
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size() - 1);
      const std::string line = text.substr(at, end + 1 - at);
      (line.starts_with("#include") ? includes : formulas) += line;
      at = end + 1;
    }
    formulas += "}\n";
  }
  int dividers = 0, strides = 0;
  for (const Walk& w : walks_) {
    dividers += static_cast<int>(w.sizes.size());
    strides += static_cast<int>(w.sizes.size() * static_cast<int64_t>(w.operands.size()));
  }
  std::string plan = "struct Plan {\n  int64_t count;\n";
  if (const size_t n = operands_.size() + slots_.size()) plan += join("  Slot slots[", n, "];\n");
  if (!attributes_.empty()) plan += join("  Attribute attributes[", attributes_.size(), "];\n");
  if (dividers) plan += join("  Divider sizes[", dividers, "];\n");
  if (strides) plan += join("  int64_t strides[", strides, "];\n");
  if (extra_) plan += join("  uint64_t extra[", extra_, "];\n");
  return includes + formulas + plan +
         join("};\nconstexpr int kVector = ", vector_, ";\nusing Index = ", big_ ? "uint64_t" : "uint32_t", ";\n");
}

std::vector<int> GroupText::needed(std::span<const int> values, const std::map<int, std::string>& given) const {
  std::vector<bool> is_needed(steps_.size(), false);
  for (const int v : values) is_needed[static_cast<size_t>(v)] = true;
  for (size_t k = steps_.size(); k-- > 0;) {
    if (!is_needed[k] || given.contains(static_cast<int>(k))) continue;
    for (const Argument& a : steps_[k].arguments)
      if (a.kind == Argument::value) is_needed[static_cast<size_t>(a.index)] = true;
  }
  std::vector<int> all;
  for (size_t k = 0; k < steps_.size(); ++k)
    if (is_needed[k] && !given.contains(static_cast<int>(k))) all.push_back(static_cast<int>(k));
  return all;
}

std::vector<int> GroupText::behind_argument(int row, int argument) const {
  const Argument& a = steps_[static_cast<size_t>(row)].arguments[static_cast<size_t>(argument)];
  if (a.kind != Argument::value) return {};
  return needed({&a.index, 1}, {});
}
std::string GroupText::argument_statements(int row, int argument, std::span<const int> kept) const {
  return print(kept, {}, &steps_[static_cast<size_t>(row)].arguments[static_cast<size_t>(argument)]);
}
std::string GroupText::statements(std::span<const int> values, const std::map<int, std::string>& given) const {
  return print(values, given, nullptr);
}

std::string GroupText::print(std::span<const int> values, const std::map<int, std::string>& given,
                             const Argument* out) const {
  std::vector<int> roots(values.begin(), values.end());
  if (out && out->kind == Argument::value) roots.push_back(out->index);
  const std::vector<int> all = needed(roots, given);
  std::string loads, body, declared, stores;
  std::vector<bool> loaded(operands_.size(), false);
  if (out && out->kind == Argument::operand) loaded[static_cast<size_t>(out->index)] = true;
  for (const int k : all)
    for (const Argument& a : steps_[static_cast<size_t>(k)].arguments)
      if (a.kind == Argument::operand) loaded[static_cast<size_t>(a.index)] = true;
  // The places of operands that are walked.
  int divider = 0, stride = 0;
  for (const Walk& w : walks_) {
    const auto rank = static_cast<int>(w.sizes.size());
    bool used = false;
    for (const int o : w.operands) used |= loaded[static_cast<size_t>(o)];
    if (used) {
      for (const int o : w.operands) loads += join("  int64_t o", o, " = 0;\n");
      loads += "  {\n    Index rest = static_cast<Index>(i);\n";
      for (int d = rank - 1; d >= 0; --d) {
        if (d > 0)
          loads +=
              join("    { const Divider& size = plan.sizes[", divider + d,
                   "];\n      const Index quotient = divided(rest, size), index = rest - quotient * size.divisor;\n"
                   "      rest = quotient;\n");
        else
          loads += "    { const Index index = rest;\n";
        int at = stride;
        for (const int o : w.operands) {
          loads += join("      o", o, " += plan.strides[", at + d, "] * static_cast<int64_t>(index);\n");
          at += rank;
        }
        loads += "    }\n";
      }
      loads += "  }\n";
    }
    divider += rank;
    stride += rank * static_cast<int>(w.operands.size());
  }
  for (size_t o = 0; o < operands_.size(); ++o) {
    if (!loaded[o]) continue;
    const Operand& operand = operands_[o];
    const std::string type = type_of(operand.dtype);
    loads += join("  const ", type, "* __restrict__ const p", o, " = plan.slots[", o, "].template as<const ", type,
                  "*>();\n");
    const std::string at = operand.walk < 0 ? std::string("i") : join("o", o);
    if (operand.how == Operand::repeated)
      loads += join("  const ", type, " a", o, " = p", o, "[", at, "];\n");
    else if (operand.how == Operand::vectors)
      loads += join("  const Vector<", type, ", kVector> a", o, " = load_vector<kVector>(p", o, " + ", at, ");\n");
    else {
      int first = 0;  // of its strides
      for (int w = 0; w < operand.walk; ++w)
        first += static_cast<int>(walks_[static_cast<size_t>(w)].sizes.size() *
                                  static_cast<int64_t>(walks_[static_cast<size_t>(w)].operands.size()));
      const Walk& walk = walks_[static_cast<size_t>(operand.walk)];
      const auto rank = static_cast<int>(walk.sizes.size());
      first += rank * static_cast<int>(std::find(walk.operands.begin(), walk.operands.end(), static_cast<int>(o)) -
                                       walk.operands.begin());
      loads += join("  Vector<", type, ", kVector> a", o, ";\n#pragma unroll\n  for (int k = 0; k < kVector; ++k) a", o,
                    ".values[k] = p", o, "[", at, " + k * plan.strides[", first + rank - 1, "]];\n");
    }
  }
  const auto slot = [&](int index) { return operands_.size() + static_cast<size_t>(index); };
  const auto text_of = [&](const Argument& a) {
    if (a.kind == Argument::number)
      return join("plan.slots[", slot(a.index), "].template as<", type_of(a.dtype), ">()");
    if (a.kind == Argument::value) return given.contains(a.index) ? given.at(a.index) : join("v", a.index);
    return operands_[static_cast<size_t>(a.index)].how == Operand::repeated ? join("a", a.index)
                                                                            : join("a", a.index, ".values[k]");
  };
  for (const int k : all) {
    const Step& s = steps_[static_cast<size_t>(k)];
    const LateValue& v = *s.value;
    const std::string type = type_of(v.dtype);
    std::string arguments;
    for (const Argument& a : s.arguments) {
      const std::string argument = text_of(a);
      arguments += v.loop ? join("as_argument(", argument, "), ") : argument;
    }
    if (v.loop) {
      const std::string attributes =
          v.op->pointwise->scalar_count ? join("plan.attributes + ", s.attributes) : std::string("nullptr");
      body += join("    const ", type, " v", k, " = convert<", type, ">(formula_", v.op->pointwise->name, "_",
                   v.which < 0 ? std::string("forward") : std::to_string(v.which), "_",
                   kComputeNames[static_cast<int>(v.compute)], "::formula(", arguments, attributes, "));\n");
    } else {
      body += join("    const ", type, " v", k, " = convert<", type, ">(", arguments, ");\n");
    }
  }
  for (const int k : values) {
    const Step& s = steps_[static_cast<size_t>(k)];
    if (s.output < 0) continue;
    const std::string type = type_of(s.value->dtype);
    declared += join("  Vector<", type, ", kVector> r", k, ";\n");
    body += join("    r", k, ".values[k] = ", given.contains(k) ? given.at(k) : join("v", k), ";\n");
    stores += join("  store_vector(plan.slots[", slot(s.output), "].template as<", type, "*>() + i, r", k, ");\n");
  }
  if (out) body += join("    out.values[k] = ", text_of(*out), ";\n");
  return loads + declared + "#pragma unroll\n  for (int k = 0; k < kVector; ++k) {\n" + body + "  }\n" + stores;
}

}  // namespace cresset::cuda
