// cuDNN's interface of graphs, as far as one convolution, or several of the operations of cudnn_operations.h:
// descriptors are checked as the library checks them, and computed by plain loops. There are two engines: the first
// rounds float32 as TF32 does and notes that it uses tensor cores, the second is exact. Plans of the first for a
// dilation of seven fail when they are run, as some of cuDNN's do.
#include <algorithm>
#include <cmath>
#include <memory>

#include "cudnn_operations.h"
#include "emulator.h"
#include "number_types.h"

namespace {

using namespace emulator;

enum Result { SUCCESS = 0, NOT_INITIALIZED = 1001, BAD_PARAM = 2000, NOT_SUPPORTED = 3000, EXECUTION_FAILED = 5000 };
enum Kind {
  CONVOLUTION = 1,
  ENGINE = 2,
  CONFIGURATION = 3,
  HEURISTIC = 4,
  PLAN = 5,
  FORWARD = 10,
  BACKWARD_FILTER = 11,
  BACKWARD_DATA = 12,
  GRAPH = 15,
  PACK = 16,
  TENSOR = 17
};
enum Type {
  HANDLE = 0,
  DATA_TYPE = 1,
  BOOLEAN = 2,
  INT64 = 3,
  FLOAT = 4,
  DOUBLE = 5,
  POINTER = 6,
  CONVOLUTION_MODE = 7,
  HEURISTIC_MODE = 8,
  NUMERICAL_NOTE = 11,
  POINTWISE_MODE = 14,
  DESCRIPTOR = 15,
  REDUCTION_OPERATOR = 18
};

struct Handle {
  Device* device;
  void* stream = nullptr;
};
Result refused(const char* why) {
  complain("cuDNN: %s", why);
  return BAD_PARAM;
}

// The type that an attribute has, and the descriptors that have it.
bool is_right(int kind, int name, int type) {
  switch (kind) {
    case CONVOLUTION:
      return name == 100   ? type == DATA_TYPE
             : name == 101 ? type == CONVOLUTION_MODE
                           : name >= 102 && name <= 106 && type == INT64;
    case HEURISTIC: return name == 200 ? type == HEURISTIC_MODE : name == 201 && type == DESCRIPTOR;
    case PLAN: return name == 400 ? type == HANDLE : name == 401 && type == DESCRIPTOR;
    case FORWARD:
      return name == 700 || name == 701 ? type == FLOAT || type == DOUBLE
                                        : name >= 702 && name <= 705 && type == DESCRIPTOR;
    case BACKWARD_DATA:
      return name == 706 || name == 707 ? type == FLOAT || type == DOUBLE
                                        : name >= 708 && name <= 711 && type == DESCRIPTOR;
    case BACKWARD_FILTER:
      return name == 712 || name == 713 ? type == FLOAT || type == DOUBLE
                                        : name >= 714 && name <= 717 && type == DESCRIPTOR;
    case GRAPH: return name == 800 ? type == HANDLE : name == 801 && type == DESCRIPTOR;
    case PACK: return name == 1000 ? type == INT64 : (name == 1001 || name == 1003) && type == POINTER;
    case TENSOR:
      return name == 901                  ? type == DATA_TYPE
             : name == 907 || name == 908 ? type == BOOLEAN
                                          : (name == 900 || name == 902 || name == 903 || name == 906) && type == INT64;
    default: return has_graph_attribute(kind, name, type);
  }
}
size_t width_of(int type) {
  return type == BOOLEAN ? 1
         : type == DATA_TYPE || type == FLOAT || type == CONVOLUTION_MODE || type == HEURISTIC_MODE ||
                 type == POINTWISE_MODE || type == REDUCTION_OPERATOR
             ? 4
             : 8;
}

int first_of(int kind) { return kind == FORWARD ? 700 : kind == BACKWARD_DATA ? 706 : 712; }

Result check_operation(const Descriptor& d) {
  const int first = first_of(d.kind);
  for (int i = 0; i < 6; ++i)
    if (!d.values.count(first + i)) return refused("an attribute of the convolution is missing");
  const Descriptor &c = *d.part(first + 2), &w = *d.part(first + 3), &x = *d.part(first + 4), &y = *d.part(first + 5);
  const auto &xs = x.values.at(902), &ws = w.values.at(902), &ys = y.values.at(902);
  const size_t rank = size_t(c.values.at(106)[0]);
  if (rank < 2 || rank > 3 || xs.size() != rank + 2 || ws.size() != rank + 2 || ys.size() != rank + 2)
    return refused("the number of dimensions");
  if (xs[0] != ys[0] || ys[1] != ws[0] || xs[1] % ws[1] != 0 || ys[1] % (xs[1] / ws[1]) != 0)
    return refused("the channels or images of a convolution");
  for (size_t i = 0; i < rank; ++i) {
    const int64_t reach = c.values.at(102)[i] * (ws[2 + i] - 1) + 1,
                  room = xs[2 + i] + c.values.at(104)[i] + c.values.at(105)[i] - reach;
    if (room < 0 || room / c.values.at(103)[i] + 1 != ys[2 + i]) return refused("the sizes of a convolution");
  }
  return SUCCESS;
}

Result finalize(const Descriptor& d) {
  const auto has = [&](std::initializer_list<int> names) {
    return std::all_of(names.begin(), names.end(), [&](int n) { return d.values.count(n) > 0; });
  };
  switch (d.kind) {
    case TENSOR:
      return has({900, 901, 902, 903, 906}) && d.values.at(902).size() == d.values.at(903).size()
                 ? SUCCESS
                 : refused("a tensor lacks something");
    case CONVOLUTION:
      if (!has({100, 101, 102, 103, 104, 105, 106})) return refused("a convolution lacks something");
      for (int name : {102, 103, 104, 105})
        if (int64_t(d.values.at(name).size()) != d.values.at(106)[0])
          return refused("a convolution has another number of dimensions");
      return SUCCESS;
    case FORWARD:
    case BACKWARD_DATA:
    case BACKWARD_FILTER: return check_operation(d);
    case GRAPH: {
      if (!has({800, 801})) return refused("a graph has a handle and operations");
      const auto& operations = d.values.at(801);
      const bool plain = std::all_of(operations.begin(), operations.end(), [](int64_t o) {
        return is_graph_operation(reinterpret_cast<Descriptor*>(o)->kind);
      });
      return plain || operations.size() == 1 ? SUCCESS : NOT_SUPPORTED;
    }
    case HEURISTIC: return has({200, 201}) && d.part(201)->is_final ? SUCCESS : refused("a heuristic lacks something");
    case PLAN: return has({400, 401}) ? SUCCESS : refused("a plan lacks something");
    case PACK:
      return has({1000, 1001, 1003}) && d.values.at(1000).size() == d.values.at(1001).size()
                 ? SUCCESS
                 : refused("a variant pack lacks something");
    default: return problem_of(d) ? refused(problem_of(d)) : SUCCESS;
  }
}

// ---- the work

struct Images {
  int type;
  std::vector<int64_t> sizes, strides;
  char* data;
  size_t extent() const {
    int64_t last = 0;
    for (size_t i = 0; i < sizes.size(); ++i) last += (sizes[i] - 1) * strides[i];
    return size_t(last + 1) * width();
  }
  size_t width() const { return type == 1 ? 8 : type == 0 ? 4 : 2; }
  // cuDNN's numbers of types: 0 float, 1 double, 2 half, 9 bfloat16.
  double get(int64_t at) const {
    const char* p = data + at * int64_t(width());
    return type == 0   ? *reinterpret_cast<const float*>(p)
           : type == 1 ? *reinterpret_cast<const double*>(p)
           : type == 2 ? float(*reinterpret_cast<const Half*>(p))
                       : float(*reinterpret_cast<const BFloat16*>(p));
  }
  void put(int64_t at, double v) const {
    char* p = data + at * int64_t(width());
    if (type == 0)
      *reinterpret_cast<float*>(p) = float(v);
    else if (type == 1)
      *reinterpret_cast<double*>(p) = v;
    else if (type == 2)
      *reinterpret_cast<Half*>(p) = Half(float(v));
    else
      *reinterpret_cast<BFloat16*>(p) = BFloat16(float(v));
  }
};

struct Work {
  int kind;
  bool rounds;
  Images x, w, y;
  std::vector<int64_t> stride, padding, dilation;

  double seen(double v) const {
    return rounds ? float_of((bits_of(float(v)) + 0xfff + (bits_of(float(v)) >> 13 & 1)) & ~0x1fffu) : v;
  }

  // Every pair of a point of y and a point of the kernel, with the point of x that they meet in.
  void run() const {
    const Images& result = kind == FORWARD ? y : kind == BACKWARD_DATA ? x : w;
    std::vector<double> sums(result.extent() / result.width(), 0.0);
    const size_t rank = stride.size();
    const int64_t groups = x.sizes[1] / w.sizes[1], each = w.sizes[0] / groups;
    std::vector<int64_t> at(2 * rank, 0);
    while (true) {
      int64_t xo = 0, wo = 0, yo = 0;
      bool inside = true;
      for (size_t i = 0; i < rank; ++i) {
        const int64_t point = at[i] * stride[i] + at[rank + i] * dilation[i] - padding[i];
        inside = inside && point >= 0 && point < x.sizes[2 + i];
        xo += point * x.strides[2 + i], yo += at[i] * y.strides[2 + i], wo += at[rank + i] * w.strides[2 + i];
      }
      if (inside)
        for (int64_t n = 0; n < x.sizes[0]; ++n)
          for (int64_t k = 0; k < w.sizes[0]; ++k)
            for (int64_t c = 0; c < w.sizes[1]; ++c) {
              const int64_t px = xo + n * x.strides[0] + (k / each * w.sizes[1] + c) * x.strides[1],
                            pw = wo + k * w.strides[0] + c * w.strides[1],
                            py = yo + n * y.strides[0] + k * y.strides[1];
              if (kind == FORWARD)
                sums[size_t(py)] += seen(x.get(px)) * seen(w.get(pw));
              else if (kind == BACKWARD_DATA)
                sums[size_t(px)] += seen(w.get(pw)) * seen(y.get(py));
              else
                sums[size_t(pw)] += seen(x.get(px)) * seen(y.get(py));
            }
      size_t d = 2 * rank;
      while (d > 0 && ++at[d - 1] == (d - 1 < rank ? y.sizes[2 + d - 1] : w.sizes[2 + d - 1 - rank])) at[--d] = 0;
      if (d == 0) break;
    }
    for (size_t i = 0; i < sums.size(); ++i) result.put(int64_t(i), sums[i]);
  }
};

}  // namespace

EMULATOR_API size_t cudnnGetVersion() { return 91500; }
EMULATOR_API const char* cudnnGetErrorString(int status) {
  return status == 0           ? "CUDNN_STATUS_SUCCESS"
         : status == BAD_PARAM ? "CUDNN_STATUS_BAD_PARAM"
                               : "CUDNN_STATUS of the emulator";
}
EMULATOR_API int cudnnCreate(Handle** handle) {
  std::lock_guard guard(lock());
  if (!current()) return NOT_INITIALIZED;
  *handle = new Handle{current()};
  return SUCCESS;
}
EMULATOR_API int cudnnSetStream(Handle* handle, void* stream) { return handle->stream = stream, SUCCESS; }

EMULATOR_API int cudnnBackendCreateDescriptor(int kind, Descriptor** d) {
  return *d = new Descriptor{kind, false, 0, {}}, SUCCESS;
}
EMULATOR_API int cudnnBackendDestroyDescriptor(Descriptor* d) { return delete d, SUCCESS; }
EMULATOR_API int cudnnBackendFinalize(Descriptor* d) {
  const Result result = finalize(*d);
  d->is_final = result == SUCCESS;
  return result;
}
EMULATOR_API int cudnnBackendSetAttribute(Descriptor* d, int name, int type, int64_t count, const void* elements) {
  if (d->is_final) return refused("a final descriptor cannot be changed");
  if (!is_right(d->kind, name, type)) {
    complain("cuDNN: a descriptor of kind %d has no attribute %d of type %d", d->kind, name, type);
    return BAD_PARAM;
  }
  std::vector<int64_t>& values = d->values[name];
  values.assign(size_t(count), 0);
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(&values[size_t(i)], static_cast<const char*>(elements) + size_t(i) * width_of(type), width_of(type));
  if (type == DESCRIPTOR)
    for (int64_t v : values)
      if (!reinterpret_cast<Descriptor*>(v)->is_final) return refused("a part is not final");
  return SUCCESS;
}
EMULATOR_API int cudnnBackendGetAttribute(Descriptor* d, int name, int type, int64_t wanted, int64_t* count,
                                          void* elements) {
  if (d->kind == HEURISTIC && name == 202 && type == DESCRIPTOR) {
    for (*count = 0; *count < std::min<int64_t>(wanted, 2); ++*count) {
      Descriptor* to = static_cast<Descriptor**>(elements)[*count];
      to->engine = int(*count), to->is_final = true, to->values[201] = d->values[201];
    }
  } else if (d->kind == CONFIGURATION && name == 300 && type == DESCRIPTOR && wanted == 1) {
    Descriptor* to = *static_cast<Descriptor**>(elements);
    to->engine = d->engine, to->is_final = true, *count = 1;
  } else if (d->kind == ENGINE && name == 1303 && type == NUMERICAL_NOTE) {
    *count = d->engine == 0 ? 1 : 0;
    if (*count) *static_cast<int*>(elements) = 0;
  } else if (d->kind == PLAN && name == 402 && type == INT64 && d->is_final) {
    *static_cast<int64_t*>(elements) = 1024, *count = 1;
  } else {
    complain("cuDNN: attribute %d of a descriptor of kind %d is not emulated", name, d->kind);
    return NOT_SUPPORTED;
  }
  return SUCCESS;
}

static int execute_graph(Handle* handle, Descriptor* plan, Descriptor* pack) {
  std::vector<Descriptor*> operations;
  for (int64_t o : plan->part(401)->part(201)->values.at(801)) operations.push_back(reinterpret_cast<Descriptor*>(o));
  Memory memory;
  const auto &ids = pack->values.at(1000), &pointers = pack->values.at(1001);
  for (size_t i = 0; i < ids.size(); ++i) memory[ids[i]] = reinterpret_cast<char*>(pointers[i]);
  std::lock_guard guard(lock());
  Stream* stream = find_stream(handle->stream);
  if (!stream || stream->device != handle->device) return refused("the stream is not one of the handle's device");
  const auto touch = [device = handle->device](char* p, size_t bytes) {
    return device_may_use("cudnnBackendExecute", "a tensor", device, reinterpret_cast<Address>(p), bytes);
  };
  if (!Operations::touches(operations, memory, touch)) return refused("a tensor has no memory, or lies badly");
  const Status status = submit(stream, "cudnnBackendExecute", [work = Operations::prepare(operations, memory)] {
    work();
    return CUDA_SUCCESS;
  });
  return status == CUDA_SUCCESS ? SUCCESS : EXECUTION_FAILED;
}

EMULATOR_API int cudnnBackendExecute(Handle* handle, Descriptor* plan, Descriptor* pack) {
  if (!plan->is_final || !pack->is_final) return refused("what is executed is final");
  if (is_graph_operation(plan->part(401)->part(201)->part(801)->kind)) return execute_graph(handle, plan, pack);
  const Descriptor &configuration = *plan->part(401), &operation = *configuration.part(201)->part(801),
                   &c = *operation.part(first_of(operation.kind) + 2);
  auto work = std::make_shared<Work>();
  work->kind = operation.kind;
  work->stride = c.values.at(103), work->padding = c.values.at(105), work->dilation = c.values.at(102);
  Images* const all[] = {&work->w, &work->x, &work->y};
  for (int i = 0; i < 3; ++i) {
    const Descriptor& t = *operation.part(first_of(operation.kind) + 3 + i);
    const auto& ids = pack->values.at(1000);
    const auto found = std::find(ids.begin(), ids.end(), t.values.at(906)[0]);
    if (found == ids.end()) return refused("a tensor has no memory");
    *all[i] = {int(t.values.at(901)[0]), t.values.at(902), t.values.at(903),
               reinterpret_cast<char*>(pack->values.at(1001)[size_t(found - ids.begin())])};
    if (reinterpret_cast<uintptr_t>(all[i]->data) % size_t(t.values.at(900)[0]) != 0)
      return refused("a tensor is less aligned than was said");
  }
  if (configuration.engine == 0 && work->dilation[0] == 7) return NOT_SUPPORTED;
  work->rounds = configuration.engine == 0 && work->x.type == 0;
  std::lock_guard guard(lock());
  Stream* stream = find_stream(handle->stream);
  if (!stream || stream->device != handle->device) return refused("the stream is not one of the handle's device");
  if (!device_may_use("cudnnBackendExecute", "the workspace", handle->device, Address(pack->values.at(1003)[0]), 1024))
    return BAD_PARAM;
  const Status status = submit(stream, "cudnnBackendExecute", [work, device = handle->device] {
    for (const Images* i : {&work->x, &work->w, &work->y})
      if (!device_may_use("cudnnBackendExecute", "a tensor", device, reinterpret_cast<Address>(i->data), i->extent()))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    work->run();
    return CUDA_SUCCESS;
  });
  return status == CUDA_SUCCESS ? SUCCESS : EXECUTION_FAILED;
}
