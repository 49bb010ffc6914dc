// The text of a group of late values (Note [Computing late]): what it reads and writes, and the functions that compute
// it for a few neighboring elements at once.
//
// Note [Groups as kernels]
// Every value is computed by the formula that eager's kernel has, and is rounded to its dtype before the next formula
// reads it: so the bits are eager's. What depends on sizes, addresses and numbers is a parameter of the kernel; its
// text says only which formulas there are, what they read, and how an operand is walked. The text's short form, the
// `signature`, finds a kernel again without printing it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "cuda/divider.h"
#include "dispatch/late.h"

namespace cresset::cuda {

class GroupText {
 public:
  // `vector`: so many elements at once, which divide the length of rows of `row` elements (0: there are no rows).
  // 0: as many as can be.
  // `extra` are words that stand at the end of struct Plan.
  explicit GroupText(std::span<const TileResult> results, int64_t row = 0, int vector = 0,
                     std::span<const uint64_t> extra = {});

  int vector() const { return vector_; }
  bool fits() const { return fits_; }                          // into the parameters of a kernel
  const std::string& signature() const { return signature_; }  // of the text
  std::span<const char> parameters() const { return bytes_; }  // struct Plan of the text
  // Includes, formulas, struct Plan.
  std::string beginning() const;
  // Statements that compute the values and store those that are kept. Those in `given` are there already: what each is
  // called, an expression of `k`. The variable `i` is the place of the first element.
  std::string statements(std::span<const int> values, const std::map<int, std::string>& given) const;
  // The values behind an argument of an operator on rows; and statements that make its elements, `out.values[k]`, and
  // store those values of `kept`.
  std::vector<int> behind_argument(int row, int argument) const;
  std::string argument_statements(int row, int argument, std::span<const int> kept) const;

 private:
  struct Operand {
    char* base;
    Dtype dtype;
    int walk;      // -1: element i
    Dims strides;  // in the dimensions of the walk
    enum How : uint8_t { vectors, repeated, gathered } how = vectors;
  };
  struct Walk {
    Dims given;  // the sizes as they were
    Dims sizes;
    std::vector<int> operands;
  };
  struct Argument {
    enum Kind : uint8_t { operand, number, value } kind;
    int index;  // of the operand, the slot or the value
    Dtype dtype;
  };
  struct Step {
    const LateValue* value;
    int output;  // slot of the address; -1: it is not written
    int attributes;
    std::vector<Argument> arguments;
  };

  // All values that those need and that are not in `given`, in order.
  std::vector<int> needed(std::span<const int> values, const std::map<int, std::string>& given) const;
  std::string print(std::span<const int> values, const std::map<int, std::string>& given, const Argument* out) const;
  void read(std::span<const TileResult> results);
  int add_operand(const LateValue& v, const LateValue::Input& in);
  void choose_vector(int64_t row, int wanted);
  bool is_aligned(const void* p, int64_t width, int vector) const;
  void sign();
  void put_parameters(std::span<const uint64_t> extra);

  std::vector<Operand> operands_;
  std::vector<Walk> walks_;
  std::vector<Step> steps_;
  struct Slot {
    char bytes[16];
  };
  std::vector<Slot> slots_;  // numbers and outputs; those of the operands come before
  std::vector<ScalarAttribute> attributes_;
  int64_t count_ = 0;
  int vector_ = 1;
  size_t extra_ = 0;
  bool big_ = false, fits_ = true;
  std::string signature_;
  std::vector<char> bytes_;
};

}  // namespace cresset::cuda
