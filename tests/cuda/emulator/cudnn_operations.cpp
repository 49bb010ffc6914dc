#include "cudnn_operations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "number_types.h"

namespace emulator {
namespace operations {

enum Type { DATA_TYPE = 1, INT64 = 3, POINTWISE_MODE = 14, DESCRIPTOR = 15, REDUCTION_OPERATOR = 18 };
enum Mode {
  ADD = 0,
  MUL = 1,
  DIV = 6,
  SUB = 9,
  EXP = 13,
  LOG = 15,
  IDENTITY = 21,
  CMP_GE = 303,
  GEN_INDEX = 501,
  BINARY_SELECT = 601
};

// Of cuDNN's types: 0 float, 1 double, 2 half, 4 int32, 9 bfloat16, 11 bool.
size_t width_of(int type) { return type == 1 ? 8 : type == 2 || type == 9 ? 2 : type == 11 ? 1 : 4; }
double load(const char* p, int type) {
  switch (type) {
    case 0: return *reinterpret_cast<const float*>(p);
    case 1: return *reinterpret_cast<const double*>(p);
    case 2: return float(*reinterpret_cast<const Half*>(p));
    case 4: return *reinterpret_cast<const int32_t*>(p);
    case 9: return float(*reinterpret_cast<const BFloat16*>(p));
    default: return *reinterpret_cast<const bool*>(p);
  }
}
void store(char* p, int type, double v) {
  switch (type) {
    case 0: *reinterpret_cast<float*>(p) = float(v); break;
    case 1: *reinterpret_cast<double*>(p) = v; break;
    case 2: *reinterpret_cast<Half*>(p) = Half(float(v)); break;
    case 4: *reinterpret_cast<int32_t*>(p) = int32_t(v); break;
    case 9: *reinterpret_cast<BFloat16*>(p) = BFloat16(float(v)); break;
    default: *reinterpret_cast<bool*>(p) = v != 0;
  }
}

using Sizes = std::vector<int64_t>;
int64_t count_of(const Sizes& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}
// Every place of a tensor, in order: f(number, coordinates).
template <class F>
void each(const Sizes& sizes, const F& f) {
  Sizes at(sizes.size(), 0);
  const int64_t n = count_of(sizes);
  for (int64_t i = 0; i < n; ++i) {
    f(i, at);
    for (size_t d = sizes.size(); d-- > 0 && ++at[d] == sizes[d];) at[d] = 0;
  }
}
int64_t offset_of(const Sizes& at, const Sizes& strides) {
  int64_t o = 0;
  for (size_t d = 0; d < at.size(); ++d) o += at[d] * strides[d];
  return o;
}

struct Tensor {
  int type;
  Sizes sizes, strides;
  std::vector<double> elements;  // in the order of the coordinates
  char* memory = nullptr;        // null: virtual
  // Where another tensor's coordinates lie in this one, which may be smaller: several then share an element, neighbours
  // together.
  double get(const Sizes& at, const Sizes& of) const {
    int64_t i = 0;
    for (size_t d = 0; d < sizes.size(); ++d) i = i * sizes[d] + at[d] * sizes[d] / of[d];
    return elements[size_t(i)];
  }
  int64_t extent() const {
    int64_t last = 0;
    for (size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
    return last + 1;
  }
  void read() {
    each(sizes, [&](int64_t i, const Sizes& at) {
      elements[size_t(i)] = load(memory + offset_of(at, strides) * int64_t(width_of(type)), type);
    });
  }
  void put(int64_t i, const Sizes& at, double v) {
    char rounded[8];
    store(rounded, type, v);
    elements[size_t(i)] = load(rounded, type);
    if (memory) store(memory + offset_of(at, strides) * int64_t(width_of(type)), type, v);
  }
};

struct GraphWork {
  std::vector<Descriptor*> operations;
  std::map<int64_t, Tensor> tensors;
  std::vector<int64_t> inputs;

  Tensor& at(const Descriptor& operation, int name) { return tensors.at(operation.part(name)->number(906)); }

  void pointwise(const Descriptor& o) {
    const Descriptor& description = *o.part(750);
    const int64_t mode = description.number(0);
    Tensor &y = at(o, 753), &x = at(o, 751);
    Tensor *b = o.has(752) ? &at(o, 752) : nullptr, *t = o.has(758) ? &at(o, 758) : nullptr;
    each(y.sizes, [&](int64_t i, const Sizes& c) {
      const double v = x.get(c, y.sizes), w = b ? b->get(c, y.sizes) : 0;
      double r = 0;
      switch (mode) {
        case ADD: r = v + w; break;
        case MUL: r = v * w; break;
        case DIV: r = v / w; break;
        case SUB: r = v - w; break;
        case EXP: r = std::exp(v); break;
        case LOG: r = std::log(v); break;
        case IDENTITY: r = v; break;
        case CMP_GE: r = v >= w; break;
        case GEN_INDEX: r = double(c[size_t(description.number(9))]); break;
        case BINARY_SELECT: r = t->get(c, y.sizes) != 0 ? v : w; break;
      }
      y.put(i, c, r);
    });
  }
  void reduce(const Descriptor& o) {
    Tensor &y = at(o, 1611), &x = at(o, 1610);
    const bool sum = o.part(1612)->number(1600) == 0;
    std::vector<double> results(y.elements.size(), sum ? 0 : -std::numeric_limits<double>::infinity());
    each(x.sizes, [&](int64_t i, const Sizes& c) {
      int64_t to = 0;
      for (size_t d = 0; d < c.size(); ++d) to = to * y.sizes[d] + c[d] * y.sizes[d] / x.sizes[d];
      double& r = results[size_t(to)];
      r = sum ? r + x.elements[size_t(i)] : std::max(r, x.elements[size_t(i)]);
    });
    each(y.sizes, [&](int64_t i, const Sizes& c) { y.put(i, c, results[size_t(i)]); });
  }
  void multiply(const Descriptor& o) {
    Tensor &c = at(o, 1522), &a = at(o, 1520), &b = at(o, 1521);
    const size_t n = c.sizes.size();
    const int64_t rows = c.sizes[n - 2], columns = c.sizes[n - 1], inner = a.sizes[n - 1];
    Sizes batch(c.sizes.begin(), c.sizes.end() - 2);
    std::vector<double> row(static_cast<size_t>(columns));
    each(batch, [&](int64_t number, const Sizes& at) {
      int64_t first_a = 0, first_b = 0;
      for (size_t d = 0; d < batch.size(); ++d) {
        first_a = first_a * a.sizes[d] + at[d] * a.sizes[d] / batch[d];
        first_b = first_b * b.sizes[d] + at[d] * b.sizes[d] / batch[d];
      }
      const double *pa = a.elements.data() + first_a * rows * inner,
                   *pb = b.elements.data() + first_b * inner * columns;
      Sizes place = at;
      place.resize(n);
      for (int64_t i = 0; i < rows; ++i) {
        std::fill(row.begin(), row.end(), 0.0);
        for (int64_t k = 0; k < inner; ++k)
          for (int64_t j = 0; j < columns; ++j) row[size_t(j)] += pa[i * inner + k] * pb[k * columns + j];
        place[n - 2] = i;
        for (int64_t j = 0; j < columns; ++j)
          place[n - 1] = j, c.put((number * rows + i) * columns + j, place, row[size_t(j)]);
      }
    });
  }
  // The same memory, seen with other sizes and strides.
  void reshape(const Descriptor& o) {
    Tensor &y = at(o, 2201), &x = at(o, 2200);
    std::vector<double> flat(size_t(std::max(x.extent(), y.extent())));
    each(x.sizes, [&](int64_t i, const Sizes& c) { flat[size_t(offset_of(c, x.strides))] = x.elements[size_t(i)]; });
    each(y.sizes, [&](int64_t i, const Sizes& c) { y.put(i, c, flat[size_t(offset_of(c, y.strides))]); });
  }

  void run() {
    for (int64_t id : inputs) tensors.at(id).read();
    for (const Descriptor* o : operations) switch (o->kind) {
        case POINTWISE_OPERATION: pointwise(*o); break;
        case REDUCTION_OPERATION: reduce(*o); break;
        case PRODUCT_OPERATION: multiply(*o); break;
        case RESHAPE_OPERATION: reshape(*o); break;
      }
  }
};

struct Names {
  std::vector<int> read;
  int written;
};
Names names_of(int kind) {
  switch (kind) {
    case POINTWISE_OPERATION: return {{751, 752, 758}, 753};
    case REDUCTION_OPERATION: return {{1610}, 1611};
    case PRODUCT_OPERATION: return {{1520, 1521}, 1522};
    default: return {{2200}, 2201};
  }
}

}  // namespace operations

bool is_graph_operation(int kind) {
  return kind == POINTWISE_OPERATION || kind == REDUCTION_OPERATION || kind == PRODUCT_OPERATION ||
         kind == RESHAPE_OPERATION;
}

bool has_graph_attribute(int kind, int name, int type) {
  using namespace operations;
  switch (kind) {
    case POINTWISE:
      return name == 0 ? type == POINTWISE_MODE : name == 1 ? type == DATA_TYPE : name == 9 && type == INT64;
    case PRODUCT: return name == 1500 && type == DATA_TYPE;
    case REDUCTION: return name == 1600 ? type == REDUCTION_OPERATOR : name == 1601 && type == DATA_TYPE;
    case POINTWISE_OPERATION: return type == DESCRIPTOR && ((name >= 750 && name <= 753) || name == 758);
    case PRODUCT_OPERATION: return type == DESCRIPTOR && name >= 1520 && name <= 1523;
    case REDUCTION_OPERATION: return type == DESCRIPTOR && name >= 1610 && name <= 1612;
    case RESHAPE_OPERATION: return type == DESCRIPTOR && (name == 2200 || name == 2201);
    default: return false;
  }
}

const char* problem_of(const Descriptor& d) {
  using namespace operations;
  const auto sizes = [&](int name) { return d.part(name)->values.at(902); };
  switch (d.kind) {
    case POINTWISE:
      return !d.has(0) || !d.has(1)                   ? "a pointwise operation lacks its mode or type"
             : (d.number(0) == GEN_INDEX) != d.has(9) ? "an axis belongs to the index"
                                                      : nullptr;
    case PRODUCT: return d.has(1500) ? nullptr : "a product lacks its type";
    case REDUCTION: return d.has(1600) && d.has(1601) ? nullptr : "a reduction lacks something";
    case RESHAPE_OPERATION:
      return d.has(2200) && d.has(2201) && count_of(sizes(2200)) == count_of(sizes(2201))
                 ? nullptr
                 : "a reshape keeps the number of elements";
    case REDUCTION_OPERATION: return d.has(1610) && d.has(1611) && d.has(1612) ? nullptr : "a reduction lacks a tensor";
    case PRODUCT_OPERATION: {
      if (!d.has(1520) || !d.has(1521) || !d.has(1522) || !d.has(1523)) return "a product lacks a tensor";
      const Sizes a = sizes(1520), b = sizes(1521), c = sizes(1522);
      const size_t n = c.size();
      if (a.size() != n || b.size() != n || a[n - 1] != b[n - 2] || a[n - 2] != c[n - 2] || b[n - 1] != c[n - 1])
        return "the sizes of a product";
      return nullptr;
    }
    case POINTWISE_OPERATION: {
      if (!d.has(750) || !d.has(751) || !d.has(753)) return "a pointwise operation lacks a tensor";
      const int64_t mode = d.part(750)->number(0);
      const bool two =
          mode == ADD || mode == MUL || mode == DIV || mode == SUB || mode == CMP_GE || mode == BINARY_SELECT;
      if (two != d.has(752) || (mode == BINARY_SELECT) != d.has(758))
        return "the number of a pointwise operation's tensors";
      const Sizes y = sizes(753);
      for (int name : {751, 752, 758})
        if (d.has(name))
          for (size_t i = 0; i < y.size(); ++i)
            if (sizes(name)[i] != y[i] && sizes(name)[i] != 1) return "the sizes of a pointwise operation";
      return nullptr;
    }
    default: return "not an operation";
  }
}

bool Operations::touches(const std::vector<Descriptor*>& operations, const Memory& memory,
                         const std::function<bool(char*, size_t)>& touch) {
  using namespace operations;
  for (const Descriptor* o : operations) {
    Names names = names_of(o->kind);
    names.read.push_back(names.written);
    for (int name : names.read) {
      if (!o->has(name)) continue;
      const Descriptor& d = *o->part(name);
      if ((d.has(907) && d.number(907)) || (d.has(908) && d.number(908))) continue;
      Tensor t{int(d.number(901)), d.values.at(902), d.values.at(903), {}};
      const auto found = memory.find(d.number(906));
      if (found == memory.end() || reinterpret_cast<uintptr_t>(found->second) % size_t(d.number(900)) != 0 ||
          !touch(found->second, size_t(t.extent()) * width_of(t.type)))
        return false;
    }
  }
  return true;
}

std::function<void()> Operations::prepare(const std::vector<Descriptor*>& operations, const Memory& memory) {
  using namespace operations;
  auto graph = std::make_shared<GraphWork>();
  graph->operations = operations;
  std::map<int64_t, bool> written;
  for (const Descriptor* o : operations) {
    const Names names = names_of(o->kind);
    const auto add = [&](int name, bool is_written) {
      if (!o->has(name)) return;
      const Descriptor& d = *o->part(name);
      const int64_t id = d.number(906);
      if (graph->tensors.count(id)) return;
      Tensor t{int(d.number(901)), d.values.at(902), d.values.at(903), {}};
      t.elements.resize(size_t(count_of(t.sizes)));
      if (d.has(908) && d.number(908))
        t.elements[0] = load(memory.at(id), t.type);
      else if (!(d.has(907) && d.number(907))) {
        t.memory = memory.at(id);
        if (!is_written) graph->inputs.push_back(id);
      }
      graph->tensors.emplace(id, std::move(t));
    };
    for (int name : names.read) add(name, false);
    add(names.written, true);
  }
  return [graph] { graph->run(); };
}

}  // namespace emulator
