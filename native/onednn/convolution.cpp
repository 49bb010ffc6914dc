// Convolutions by oneDNN's primitives for images with the channels innermost. See Note [Pieces of a convolution] in ops/convolution_library.h.
#include <omp.h>

#include <cstring>
#include <dnnl.hpp>
#include <list>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/fork_lock.h"
#include "ops/convolution_library.h"

namespace cresset {
namespace {

using dnnl::memory;
using Kind = ConvolutionKind;

dnnl::engine& engine() {
  static auto* the = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *the;
}
dnnl::stream& stream() {
  omp_set_num_threads(1);  // the threads are ours: the library's OpenMP starts none
  static thread_local auto* the = new dnnl::stream(engine());
  return *the;
}

struct Described {
  memory::desc x, y, w, bias, plain_w;
  memory::dims stride, dilation, before, after;
};

Described describe(const LibraryConvolution& c) {
  const int first = c.in[0] == 1 && c.out[0] == 1 && c.kernel[0] == 1 ? 1 : 0;
  memory::dims x{c.images, c.in_channels}, y{c.images, c.out_channels}, w;
  if (c.groups > 1) w = {c.groups, c.out_channels / c.groups, c.in_channels / c.groups};
  else w = {c.out_channels, c.in_channels};
  Described d;
  for (int i = first; i < 3; ++i) {
    x.push_back(c.in[i]);
    y.push_back(c.out[i]);
    w.push_back(c.kernel[i]);
    d.stride.push_back(c.stride[i]);
    d.dilation.push_back(c.dilation[i] - 1);
    d.before.push_back(c.before[i]);
    d.after.push_back(c.after[i]);
  }
  const auto f32 = memory::data_type::f32;
  const auto inside = first ? memory::format_tag::nhwc : memory::format_tag::ndhwc;
  d.x = memory::desc(x, f32, inside);
  d.y = memory::desc(y, f32, inside);
  d.w = memory::desc(w, f32, memory::format_tag::any);
  memory::dims dense(w.size(), 1);
  for (size_t i = w.size() - 1; i > 0; --i) dense[i - 1] = dense[i] * w[i];
  d.plain_w = memory::desc(w, f32, dense);
  if (c.has_bias) d.bias = memory::desc({c.out_channels}, f32, memory::format_tag::a);
  return d;
}

class Primitive : public LibraryKernel {
 public:
  explicit Primitive(const LibraryConvolution& c) {
    const Described d = describe(c);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const auto direct = dnnl::algorithm::convolution_direct;
    const auto take = [&](const auto& description, const memory::desc& x, const memory::desc& y, const memory::desc& w) {
      name_ = description.impl_info_str();
      x_ = x, y_ = y, w_ = w;
      scratch_ = description.scratchpad_desc();
    };
    omp_set_num_threads(1);  // primitives are made for the number of threads that OpenMP would use
    {
      const dnnl::convolution_forward::primitive_desc forward(engine(), dnnl::prop_kind::forward_training, direct, d.x, d.w, d.bias, d.y, d.stride, d.dilation, d.before, d.after, attributes);
      switch (c.kind) {
        case Kind::forward:
          take(forward, forward.src_desc(), forward.dst_desc(), forward.weights_desc());
          primitive_ = dnnl::convolution_forward(forward);
          bias_ = d.bias;
          break;
        case Kind::input_gradient: {
          const dnnl::convolution_backward_data::primitive_desc back(engine(), direct, d.x, d.w, d.y, d.stride, d.dilation, d.before, d.after, forward, attributes);
          take(back, back.diff_src_desc(), back.diff_dst_desc(), back.weights_desc());
          primitive_ = dnnl::convolution_backward_data(back);
          break;
        }
        case Kind::weight_gradient: {
          const dnnl::convolution_backward_weights::primitive_desc back(engine(), direct, d.x, d.w, d.y, d.stride, d.dilation, d.before, d.after, forward, attributes);
          take(back, back.src_desc(), back.diff_dst_desc(), back.diff_weights_desc());
          primitive_ = dnnl::convolution_backward_weights(back);
          break;
        }
      }
    }
    plain_ = d.plain_w;
    kind_ = c.kind;
    pack_ = c.kind == Kind::weight_gradient ? dnnl::reorder({engine(), w_, engine(), plain_}) : dnnl::reorder({engine(), plain_, engine(), w_});
    weight_bytes = static_cast<int64_t>(w_.get_size());
    scratch_bytes = static_cast<int64_t>(scratch_.get_size());
  }

  // The reference and the gemm forms are slower than our own kernels.
  bool is_worth_it() const { return name_.find("ref") == name_.npos && name_.find("gemm:") == name_.npos; }

  bool packs_like(const LibraryKernel& other) const override { return w_ == static_cast<const Primitive&>(other).w_; }
  void pack(const float* weight, char* packed) const override { move(plain_, const_cast<float*>(weight), w_, packed); }
  void unpack(const char* packed, float* weight) const override { move(w_, const_cast<char*>(packed), plain_, weight); }
  void run(const float* from, const char* packed, const float* bias, float* to, char* scratch) const override {
    const bool forward = kind_ == Kind::forward;
    const memory x(x_, engine(), forward ? const_cast<float*>(from) : to), y(y_, engine(), forward ? to : const_cast<float*>(from)), w(w_, engine(), const_cast<char*>(packed));
    std::unordered_map<int, memory> arguments{{forward ? DNNL_ARG_SRC : DNNL_ARG_DIFF_SRC, x}, {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, y}, {DNNL_ARG_WEIGHTS, w}};
    if (forward && bias) arguments.emplace(DNNL_ARG_BIAS, memory(bias_, engine(), const_cast<float*>(bias)));
    execute(arguments, scratch);
  }
  void run_weight(const float* grad, const float* input, char* packed, char* scratch) const override {
    std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, memory(x_, engine(), const_cast<float*>(input))},
                                              {DNNL_ARG_DIFF_DST, memory(y_, engine(), const_cast<float*>(grad))},
                                              {DNNL_ARG_DIFF_WEIGHTS, memory(w_, engine(), packed)}};
    execute(arguments, scratch);
  }

 private:
  std::string name_;
  Kind kind_;
  memory::desc x_, y_, w_, bias_, plain_, scratch_;
  dnnl::primitive primitive_;
  dnnl::reorder pack_;

  void move(const memory::desc& from, void* source, const memory::desc& to, void* target) const {
    memory a(from, engine(), source), b(to, engine(), target);
    pack_.execute(stream(), a, b);
    stream().wait();
  }
  void execute(std::unordered_map<int, memory>& arguments, char* scratch) const {
    if (scratch_bytes) arguments.emplace(DNNL_ARG_SCRATCHPAD, memory(scratch_, engine(), scratch));
    primitive_.execute(stream(), arguments);
    stream().wait();
  }
};

struct SameNumbers {
  static_assert(sizeof(LibraryConvolution) % sizeof(int64_t) == 0);
  size_t operator()(const LibraryConvolution& c) const { return std::hash<std::string_view>()({reinterpret_cast<const char*>(&c), sizeof c}); }
  bool operator()(const LibraryConvolution& a, const LibraryConvolution& b) const { return std::memcmp(&a, &b, sizeof a) == 0; }
};

// The primitives used last; making one compiles machine code and takes milliseconds.
class Cache {
 public:
  std::shared_ptr<const LibraryKernel> find(const LibraryConvolution& c) {
    std::lock_guard guard(lock_);
    if (auto at = places_.find(c); at != places_.end()) {
      order_.splice(order_.begin(), order_, at->second);
      return at->second->second;
    }
    std::shared_ptr<const Primitive> made;
    try {
      made = std::make_shared<const Primitive>(c);
      if (!made->is_worth_it()) made.reset();
    } catch (const dnnl::error& e) {
      if (e.status != dnnl_unimplemented) throw Error(e.status == dnnl_out_of_memory ? ErrorKind::out_of_memory : ErrorKind::runtime, std::string("convolution: oneDNN: ") + e.what());
    }
    order_.emplace_front(c, made);
    places_[c] = order_.begin();
    if (order_.size() > kMost) {
      places_.erase(order_.back().first);
      order_.pop_back();
    }
    return made;
  }

 private:
  static constexpr size_t kMost = 256;
  using Entries = std::list<std::pair<LibraryConvolution, std::shared_ptr<const Primitive>>>;
  ForkLock lock_;
  Entries order_;  // the latest first
  std::unordered_map<LibraryConvolution, Entries::iterator, SameNumbers, SameNumbers> places_;
};

std::shared_ptr<const LibraryKernel> find_convolution(const LibraryConvolution& c) {
  static auto* the = new Cache;
  return the->find(c);
}

}  // namespace

void install_onednn_convolution() { library_convolution = find_convolution; }

}  // namespace cresset
