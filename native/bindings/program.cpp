// The interpreter of torch.jit: a program of flat instructions over registers, made of a Graph by
// cresset/jit/lowering.py. Registers hold Python objects, and an operator is called straight through its vectorcall
// with the names of its keywords made beforehand, so that a step costs what the operator costs.
//
// Note [Instructions]
// Code is a list of 32-bit numbers: the instruction, then its operands. An operand that is read is a register, plus
// kLastUse when nobody reads it later (it is released after the step, as a program in Python would) and kOwn when an
// operator of this program made it besides (Note [Temporaries that are written over]), or ~c for constant number c. An
// operand that is written is a register. Where a jump leads is an index of the code. The lowering is trusted to keep
// the counts right, but not with memory: `check_code` walks a program once, when it is made.
#include "bindings/program.h"

#include <array>

#include "bindings/program_arithmetic.h"

namespace cresset {
namespace {

constexpr int32_t kLastUse = 1 << 30, kOwn = 1 << 29;
constexpr int32_t kNothing = INT32_MIN;  // an operand that is not there
constexpr int kSmallFrame = 48, kSmallCall = 16;
constexpr uint32_t kStepsBetweenPauses = 64;  // jumps back after which other threads get a turn

enum Instruction : int32_t {
  MOVE,         // to, from
  CALL,         // to, function, names of keywords, count, arguments...
  BINARY,       // to, which, a, b
  COMPARE,      // to, which, a, b
  UNARY,        // to, which, a
  APPLY,        // to, function, its form in place, a: a call with one argument
  SAME,         // to, wanted, a, b: (a is b) == wanted
  LENGTH,       // to, a
  TUPLE,        // to, count, items...
  LIST,         // to, count, items...
  DICT,         // to, count, keys and values...
  UNPACK,       // from, count, to...
  ITEM,         // to, from, index
  STORE_ITEM,   // object, index, value
  ATTRIBUTE,    // to, object, name
  MEMBER,       // to, module, name of the dict in it (None: its own), name
  SET_MEMBER,   // module, name of the dict in it (None: its own), name, value
  ENTER,        // to, object: what its __enter__ gives
  EXIT,         // object
  JUMP,         // where
  JUMP_BACK,    // where
  JUMP_IF,      // condition, where
  JUMP_UNLESS,  // condition, where
  COUNT,        // to, from: to = from + 1
  JUMP_FROM,    // counter, end, where: jumps when counter >= end
  RELEASE,      // register
  RETURN,       // from
  INSTRUCTIONS
};
const char* const kNames[] = {"MOVE",      "CALL",        "BINARY",     "COMPARE",   "UNARY",   "APPLY", "SAME",
                              "LENGTH",    "TUPLE",       "LIST",       "DICT",      "UNPACK",  "ITEM",  "STORE_ITEM",
                              "ATTRIBUTE", "MEMBER",      "SET_MEMBER", "ENTER",     "EXIT",    "JUMP",  "JUMP_BACK",
                              "JUMP_IF",   "JUMP_UNLESS", "COUNT",      "JUMP_FROM", "RELEASE", "RETURN"};
static_assert(std::size(kNames) == INSTRUCTIONS);

// What follows the instruction: r read, w written, j where to jump, n a plain number below a bound, * a count and so
// many of the next letter.
const char* const kOperands[] = {"wr",  "wro*r", "wbrr", "wcrr", "wur", "wrrr", "wnrr", "wr",   "w*r",
                                 "w*r", "w2r",   "r*w",  "wrr",  "rrr", "wrr",  "wrrr", "rrrr", "wr",
                                 "r",   "j",     "j",    "rj",   "rj",  "wr",   "rrj",  "w",    "r"};
static_assert(std::size(kOperands) == INSTRUCTIONS);

PyTypeObject* program_type = nullptr;
PyObject* on_failure = nullptr;  // (program, place, exception) -> the exception to raise, with the place in its message

struct PyProgram {
  PyObject_HEAD vectorcallfunc vectorcall;
  std::vector<int32_t>* code;
  std::vector<PyObject*>* constants;
  std::vector<std::pair<int32_t, int32_t>>* places;  // (from this index of the code on, number of the place)
  int32_t registers, arguments;
  PyObject* name;
  PyObject* dict;
};
PyProgram* self_of(PyObject* o) { return reinterpret_cast<PyProgram*>(o); }

// The registers of one call. Whatever is left in them is released at the end, also when an exception passes.
class Frame {
 public:
  explicit Frame(int32_t count) : count_(count) {
    if (count > kSmallFrame) {
      many_.reset(new PyObject*[static_cast<size_t>(count)]);
      slots_ = many_.get();
    }
    std::fill(slots_, slots_ + count, nullptr);
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() {
    for (int32_t i = 0; i < count_; ++i) Py_XDECREF(slots_[i]);
  }
  PyObject*& operator[](int32_t i) { return slots_[i]; }

 private:
  int32_t count_;
  std::array<PyObject*, kSmallFrame> few_;
  std::unique_ptr<PyObject*[]> many_;
  PyObject** slots_ = few_.data();
};

// ---------------------------------------------------------------- one call

class Run {
 public:
  Run(PyProgram& program, Frame& frame)
      : code_(program.code->data()), constants_(program.constants->data()), frame_(frame) {}

  // The result, or null with an exception set; `at` is then the step that failed.
  PyObject* operator()(size_t& at) {
    const int32_t* p = code_;
    for (;;) {
      at = static_cast<size_t>(p - code_);
      switch (*p) {
        case MOVE: {
          PyObject* o = Py_NewRef(read(p[2]));
          release(p[2]);
          write(p[1], o);
          p += 3;
          break;
        }
        case CALL: {
          const int32_t count = p[4];
          PyObject* result = call(p + 5, count, p[2], p[3]);
          if (!result) return nullptr;
          for (int32_t i = 0; i < count; ++i) release(p[5 + i]);
          release(p[2]);
          write(p[1], result);
          p += 5 + count;
          break;
        }
        case BINARY: {
          const Binary& of = kBinary[p[2]];
          PyObject *a = read(p[3]), *b = read(p[4]);
          PyObject* result = is_own(p[3]) && of.in_place && may_write_over(a, b) ? of.over(a, b) : of(a, b);
          if (!take(p[1], result, p[3], p[4])) return nullptr;
          p += 5;
          break;
        }
        case COMPARE: {
          if (!take(p[1], PyObject_RichCompare(read(p[3]), read(p[4]), p[2]), p[3], p[4])) return nullptr;
          p += 5;
          break;
        }
        case UNARY: {
          if (!take(p[1], kUnary[p[2]].function(read(p[3])), p[3])) return nullptr;
          p += 4;
          break;
        }
        case APPLY: {
          PyObject* a = read(p[4]);
          PyObject* result =
              is_own(p[4]) && may_write_over(a) ? apply_over(read(p[3]), a) : PyObject_CallOneArg(read(p[2]), a);
          if (!take(p[1], result, p[4])) return nullptr;
          p += 5;
          break;
        }
        case SAME: {
          take(p[1], PyBool_FromLong((read(p[3]) == read(p[4])) == (p[2] != 0)), p[3], p[4]);
          p += 5;
          break;
        }
        case LENGTH: {
          const Py_ssize_t length = PyObject_Length(read(p[2]));
          if (length < 0 || !take(p[1], PyLong_FromSsize_t(length), p[2])) return nullptr;
          p += 3;
          break;
        }
        case TUPLE: {
          PyObject* o = PyTuple_New(p[2]);
          if (!o) return nullptr;
          for (int32_t i = 0; i < p[2]; ++i) PyTuple_SET_ITEM(o, i, Py_NewRef(read(p[3 + i])));
          p = made(p, o, p[2]);
          break;
        }
        case LIST: {
          PyObject* o = PyList_New(p[2]);
          if (!o) return nullptr;
          for (int32_t i = 0; i < p[2]; ++i) PyList_SET_ITEM(o, i, Py_NewRef(read(p[3 + i])));
          p = made(p, o, p[2]);
          break;
        }
        case DICT: {
          Ref o(PyDict_New());
          if (!o) return nullptr;
          for (int32_t i = 0; i < 2 * p[2]; i += 2)
            if (PyDict_SetItem(o.get(), read(p[3 + i]), read(p[4 + i])) < 0) return nullptr;
          p = made(p, o.release(), 2 * p[2]);
          break;
        }
        case UNPACK: {
          const Ref from = Ref::borrow(read(p[1]));
          if (!PyTuple_Check(from.get()) && !PyList_Check(from.get()))
            return PyErr_Format(PyExc_TypeError, "cannot unpack a value of type %s", Py_TYPE(from.get())->tp_name);
          const Py_ssize_t length = PySequence_Fast_GET_SIZE(from.get());
          if (length != p[2])
            return PyErr_Format(PyExc_RuntimeError, "Expected %d elements in a list but found %zd",
                                static_cast<int>(p[2]), length);
          release(p[1]);  // first: its register may be one of those written
          for (int32_t i = 0; i < p[2]; ++i) write(p[3 + i], Py_NewRef(PySequence_Fast_GET_ITEM(from.get(), i)));
          p += 3 + p[2];
          break;
        }
        case ITEM: {
          if (!take(p[1], item(read(p[2]), read(p[3])), p[2], p[3])) return nullptr;
          p += 4;
          break;
        }
        case STORE_ITEM: {
          if (PyObject_SetItem(read(p[1]), read(p[2]), read(p[3])) < 0) return nullptr;
          release(p[1]), release(p[2]), release(p[3]);
          p += 4;
          break;
        }
        case ATTRIBUTE: {
          if (!take(p[1], PyObject_GetAttr(read(p[2]), read(p[3])), p[2])) return nullptr;
          p += 4;
          break;
        }
        case SET_MEMBER: {
          if (set_member(read(p[1]), read(p[2]), read(p[3]), read(p[4])) < 0) return nullptr;
          release(p[1]), release(p[4]);
          p += 5;
          break;
        }
        case MEMBER: {
          if (!take(p[1], member(read(p[2]), read(p[3]), read(p[4])), p[2])) return nullptr;
          p += 5;
          break;
        }
        case ENTER: {
          entered_.push_back(Ref::borrow(read(p[2])));
          if (!take(p[1], PyObject_CallMethod(entered_.back().get(), "__enter__", nullptr), p[2])) {
            entered_.pop_back();
            return nullptr;
          }
          p += 3;
          break;
        }
        case EXIT: {
          const Ref object = Ref::borrow(read(p[1]));
          release(p[1]);
          if (!entered_.empty()) entered_.pop_back();
          Ref result(PyObject_CallMethod(object.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
          if (!result) return nullptr;
          p += 2;
          break;
        }
        case JUMP: p = code_ + p[1]; break;
        case JUMP_BACK:
          if (PyErr_CheckSignals() < 0) return nullptr;
          if (++jumps_ % kStepsBetweenPauses == 0) {
            Py_BEGIN_ALLOW_THREADS;
            Py_END_ALLOW_THREADS;
          }
          p = code_ + p[1];
          break;
        case JUMP_IF:
        case JUMP_UNLESS: {
          PyObject* condition = read(p[1]);
          const int truth = condition == Py_True ? 1 : condition == Py_False ? 0 : PyObject_IsTrue(condition);
          if (truth < 0) return nullptr;
          release(p[1]);
          p = truth == (*p == JUMP_IF) ? code_ + p[2] : p + 3;
          break;
        }
        case COUNT: {
          const long long count = PyLong_AsLongLong(read(p[2]));
          if ((count == -1 && PyErr_Occurred()) || !take(p[1], PyLong_FromLongLong(count + 1), p[2])) return nullptr;
          p += 3;
          break;
        }
        case JUMP_FROM: {
          const long long count = PyLong_AsLongLong(read(p[1])), end = PyLong_AsLongLong(read(p[2]));
          if ((count == -1 || end == -1) && PyErr_Occurred()) return nullptr;
          p = count >= end ? code_ + p[3] : p + 4;
          break;
        }
        case RELEASE:
          Py_CLEAR(frame_[p[1]]);
          p += 2;
          break;
        case RETURN: return Py_NewRef(read(p[1]));
        default: return PyErr_Format(PyExc_SystemError, "Program: no instruction %d", static_cast<int>(*p));
      }
    }
  }

 private:
  static int32_t index(int32_t operand) { return operand & ~(kLastUse | kOwn); }
  static bool is_own(int32_t operand) { return operand >= 0 && (operand & kOwn); }
  // Null only when the lowering forgot a value: the callers would crash, so None is read.
  PyObject* read(int32_t operand) const {
    if (operand < 0) return constants_[~operand];
    PyObject* o = frame_[index(operand)];
    return o ? o : Py_None;
  }
  void release(int32_t operand) {
    if (operand >= 0 && (operand & kLastUse)) Py_CLEAR(frame_[index(operand)]);
  }
  // Destroying the old value may run a program: the register has the new one by then.
  void write(int32_t to, PyObject* stolen) {
    PyObject* old = std::exchange(frame_[to], stolen);
    Py_XDECREF(old);
  }
  template <class... Operands>
  bool take(int32_t to, PyObject* stolen, Operands... read_here) {
    if (!stolen) return false;
    (release(read_here), ...);
    write(to, stolen);
    return true;
  }
  const int32_t* made(const int32_t* p, PyObject* stolen, int32_t count) {
    for (int32_t i = 0; i < count; ++i) release(p[3 + i]);
    write(p[1], stolen);
    return p + 3 + count;
  }

  PyObject* call(const int32_t* operands, int32_t count, int32_t function, int32_t names) {
    PyObject* keywords = names == kNothing ? nullptr : constants_[~names];
    const size_t positional = static_cast<size_t>(count - (keywords ? PyTuple_GET_SIZE(keywords) : 0));
    if (count < kSmallCall) [[likely]] {
      PyObject* values[kSmallCall];
      return gather_and_call(values, operands, count, function, positional, keywords);
    }
    std::vector<PyObject*> values(static_cast<size_t>(count) + 1);
    return gather_and_call(values.data(), operands, count, function, positional, keywords);
  }
  // One place before the arguments is free for the callee (a bound method puts its object there).
  PyObject* gather_and_call(PyObject** values, const int32_t* operands, int32_t count, int32_t function,
                            size_t positional, PyObject* keywords) {
    values[0] = nullptr;
    for (int32_t i = 0; i < count; ++i) values[i + 1] = read(operands[i]);
    return PyObject_Vectorcall(read(function), values + 1, positional | PY_VECTORCALL_ARGUMENTS_OFFSET, keywords);
  }

  static PyObject* item(PyObject* from, PyObject* at) {
    if (PyList_CheckExact(from) && PyLong_CheckExact(at)) {
      Py_ssize_t i = PyLong_AsSsize_t(at);
      if (i == -1 && PyErr_Occurred()) return nullptr;
      if (i < 0) i += PyList_GET_SIZE(from);
      if (i < 0 || i >= PyList_GET_SIZE(from)) return PyErr_Format(PyExc_RuntimeError, "list index out of range");
      return Py_NewRef(PyList_GET_ITEM(from, i));
    }
    return PyObject_GetItem(from, at);
  }

  // A parameter, buffer, submodule or attribute of a module, without the search that getattr makes.
  static PyObject* member(PyObject* object, PyObject* where, PyObject* name) {
    PyObject** own = _PyObject_GetDictPtr(object);
    PyObject* dict = own ? *own : nullptr;
    if (dict && where != Py_None) dict = PyDict_GetItemWithError(dict, where);
    if (dict && PyDict_Check(dict)) {
      PyObject* found = PyDict_GetItemWithError(dict, name);
      if (found) return Py_NewRef(found);
    }
    return PyErr_Occurred() ? nullptr : PyObject_GetAttr(object, name);
  }

  // Not through setattr: what a program stores is stored as it is, where a Python program's value is checked and
  // copied.
  static int set_member(PyObject* object, PyObject* where, PyObject* name, PyObject* value) {
    PyObject** own = _PyObject_GetDictPtr(object);
    PyObject* dict = own ? *own : nullptr;
    if (dict && where != Py_None) dict = PyDict_GetItemWithError(dict, where);
    if (dict && PyDict_Check(dict)) return PyDict_SetItem(dict, name, value);
    return PyErr_Occurred() ? -1 : PyObject_SetAttr(object, name, value);
  }

  const int32_t* code_;
  PyObject** constants_;
  Frame& frame_;
  uint32_t jumps_ = 0;
  std::vector<Ref> entered_;  // the contexts of `with` that are not left yet

 public:
  // An exception passes: the contexts are left, the innermost first.
  void leave_contexts() {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    while (!entered_.empty()) {
      const Ref object = entered_.back();
      entered_.pop_back();
      Ref result(PyObject_CallMethod(object.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
      if (!result) PyErr_WriteUnraisable(object.get());
    }
    PyErr_Restore(type, value, trace);
  }
};

int32_t place_of(const PyProgram& program, size_t at) {
  int32_t place = -1;
  for (const auto& [from, number] : *program.places) {
    if (static_cast<size_t>(from) > at) break;
    place = number;
  }
  return place;
}

// An ordinary exception learns where the program was; KeyboardInterrupt and SystemExit pass as they are.
void name_the_place(PyProgram* self, size_t at) {
  if (!on_failure || !PyErr_ExceptionMatches(PyExc_Exception)) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  Ref kind(type), exception(value), traceback(trace);
  if (trace) PyException_SetTraceback(value, trace);
  Ref told(PyObject_CallFunction(on_failure, "OiO", self, place_of(*self, at), value));
  if (!told) return;  // the handler's own exception
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(told.get())), told.get());
}

PyObject* program_vectorcall(PyObject* o, PyObject* const* args, size_t flagged, PyObject* names) {
  PyProgram* self = self_of(o);
  const Py_ssize_t count = PyVectorcall_NARGS(flagged);
  if (names && PyTuple_GET_SIZE(names))
    return PyErr_Format(PyExc_TypeError, "%U: a program takes no keywords", self->name);
  if (count != self->arguments)
    return PyErr_Format(PyExc_TypeError, "%U: expected %d arguments, got %zd", self->name,
                        static_cast<int>(self->arguments), count);
  if (Py_EnterRecursiveCall(" in a TorchScript program")) return nullptr;
  PyObject* result = guarded([&]() -> PyObject* {
    Frame frame(self->registers);
    for (Py_ssize_t i = 0; i < count; ++i) frame[static_cast<int32_t>(i)] = Py_NewRef(args[i]);
    size_t at = 0;
    Run run(*self, frame);
    const Ref alive = Ref::borrow(o);  // a program may drop its own module
    PyObject* value = run(at);
    if (!value) {
      run.leave_contexts();
      name_the_place(self, at);
    }
    return value;
  });
  Py_LeaveRecursiveCall();
  return result;
}

// ---------------------------------------------------------------- making

// Every operand is a register, constant or place of this program, every constant that names keywords is a tuple of
// them, and the end is not run past.
void check_code(const PyProgram& program) {
  const std::vector<int32_t>& code = *program.code;
  const auto size = static_cast<int64_t>(code.size()), constants = static_cast<int64_t>(program.constants->size());
  std::vector<bool> starts(code.size(), false);
  std::vector<int32_t> targets;
  size_t at = 0;
  int32_t last = -1;
  const auto next = [&]() -> int32_t {
    check_value(at < code.size(), "Program: the last instruction is cut off");
    return code[at++];
  };
  const auto readable = [&](int32_t operand) {
    check_value(operand < 0 ? ~operand < constants : (operand & ~(kLastUse | kOwn)) < program.registers,
                "Program: no operand ", operand, " at ", at - 1);
  };
  while (at < code.size()) {
    starts[at] = true;
    last = next();
    check_value(last >= 0 && last < INSTRUCTIONS, "Program: no instruction ", last, " at ", at - 1);
    for (const char* letter = kOperands[last]; *letter; ++letter) {
      int64_t repeat = 1;
      if (*letter == '*' || *letter == '2') {
        repeat = next() * static_cast<int64_t>(*letter == '2' ? 2 : 1);
        check_value(repeat >= 0 && repeat <= size, "Program: a count of ", repeat, " at ", at - 1);
        ++letter;
      }
      for (int64_t i = 0; i < repeat; ++i) {
        const int32_t operand = next();
        switch (*letter) {
          case 'r': readable(operand); break;
          case 'w':
            check_value(operand >= 0 && operand < program.registers, "Program: no register ", operand, " at ", at - 1);
            break;
          case 'o':
            check_value(operand == kNothing ||
                            (operand < 0 && ~operand < constants && PyTuple_Check((*program.constants)[~operand])),
                        "Program: no names of keywords ", operand);
            check_value(operand == kNothing || PyTuple_GET_SIZE((*program.constants)[~operand]) <= code[at],
                        "Program: more names of keywords than arguments");
            break;
          case 'j': targets.push_back(operand); break;
          case 'b':
            check_value(operand >= 0 && operand < static_cast<int32_t>(std::size(kBinary)),
                        "Program: no binary operation ", operand);
            break;
          case 'u':
            check_value(operand >= 0 && operand < static_cast<int32_t>(std::size(kUnary)),
                        "Program: no unary operation ", operand);
            break;
          case 'c':
            check_value(operand >= 0 && operand < static_cast<int32_t>(std::size(kCompare)), "Program: no comparison ",
                        operand);
            break;
          default: break;
        }
      }
    }
  }
  for (int32_t where : targets)
    check_value(where >= 0 && where < size && starts[static_cast<size_t>(where)], "Program: a jump to ", where,
                ", where no instruction begins");
  check_value(last == RETURN || last == JUMP || last == JUMP_BACK, "Program: the code runs past its end");
}

template <class F>
void each(PyObject* sequence, F&& f) {
  Ref fast(require(PySequence_Fast(sequence, "Program: expected a sequence")));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) f(PySequence_Fast_GET_ITEM(fast.get(), i));
}

// Program(name, registers, arguments, constants, code, places)
PyObject* new_program(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    PyObject *name, *constants, *code, *places;
    int registers, arguments;
    static const char* words[] = {"name", "registers", "arguments", "constants", "code", "places", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UiiOOO:Program", const_cast<char**>(words), &name, &registers,
                                     &arguments, &constants, &code, &places))
      raise_python();
    check_value(arguments >= 0 && arguments <= registers && registers < kOwn, "Program: ", arguments, " arguments in ",
                registers, " registers");
    Ref object(require(type->tp_alloc(type, 0)));
    PyProgram* p = self_of(object.get());
    p->vectorcall = program_vectorcall;
    p->code = new std::vector<int32_t>;
    p->constants = new std::vector<PyObject*>;
    p->places = new std::vector<std::pair<int32_t, int32_t>>;
    p->registers = registers, p->arguments = arguments;
    p->name = Py_NewRef(name);
    each(constants, [&](PyObject* o) { p->constants->push_back(Py_NewRef(o)); });
    each(code, [&](PyObject* o) {
      const long v = PyLong_AsLong(o);
      if (v == -1 && PyErr_Occurred()) raise_python();
      check_value(v >= INT32_MIN && v <= INT32_MAX, "Program: the number ", v, " does not fit in an instruction");
      p->code->push_back(static_cast<int32_t>(v));
    });
    each(places, [&](PyObject* o) {
      int from, number;
      if (!PyArg_ParseTuple(o, "ii", &from, &number)) raise_python();
      p->places->emplace_back(from, number);
    });
    check_code(*p);
    return object.release();
  });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(self_of(self)->dict);
  if (self_of(self)->constants)
    for (PyObject* o : *self_of(self)->constants) Py_VISIT(o);
  return 0;
}
int clear(PyObject* self) {
  Py_CLEAR(self_of(self)->dict);
  // A program that is still reachable could be called: its constants become None, not nothing.
  if (self_of(self)->constants)
    for (PyObject*& o : *self_of(self)->constants) {
      PyObject* old = std::exchange(o, Py_NewRef(Py_None));
      Py_DECREF(old);
    }
  return 0;
}
void destroy(PyObject* self) {
  PyObject_GC_UnTrack(self);
  PyProgram* p = self_of(self);
  Py_CLEAR(p->dict);
  if (p->constants)
    for (PyObject* o : *p->constants) Py_DECREF(o);
  delete p->constants;
  delete p->code;
  delete p->places;
  Py_XDECREF(p->name);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* represent(PyObject* self) {
  return PyUnicode_FromFormat("<program %U of %zd numbers>", self_of(self)->name,
                              static_cast<Py_ssize_t>(self_of(self)->code->size()));
}
PyObject* get_name(PyObject* self, void*) { return Py_NewRef(self_of(self)->name); }
PyObject* get_code(PyObject* self, void*) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(self_of(self)->code->size()));
  for (size_t i = 0; list && i < self_of(self)->code->size(); ++i)
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), PyLong_FromLong((*self_of(self)->code)[i]));
  return list;
}
PyGetSetDef getset[] = {{"__name__", get_name, nullptr, nullptr, nullptr},
                        {"code", get_code, nullptr, "the instructions as numbers", nullptr},
                        {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                        {}};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(PyProgram, vectorcall), READONLY, nullptr},
                         {"__dictoffset__", T_PYSSIZET, offsetof(PyProgram, dict), READONLY, nullptr},
                         {}};

PyObject* set_program_failure(PyObject*, PyObject* handler) {
  Py_XDECREF(std::exchange(on_failure, Py_NewRef(handler)));
  Py_RETURN_NONE;
}

template <class Table, class Name>
void number_names(PyObject* dict, const Table& table, Name name) {
  long number = 0;
  for (const auto& entry : table) {
    Ref value(require(PyLong_FromLong(number++)));
    if (PyDict_SetItemString(dict, name(entry), value.get()) < 0) raise_python();
  }
}

// What the lowering needs to know: {"instructions": {name: number}, "binary": ..., "unary": ..., "compare": ...,
// "last_use": ..., "own": ..., "nothing": ...}
PyObject* program_format(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref instructions(require(PyDict_New())), binary(require(PyDict_New())), unary(require(PyDict_New())),
        compare(require(PyDict_New()));
    number_names(instructions.get(), kNames, [](const char* n) { return n; });
    number_names(binary.get(), kBinary, [](const Binary& b) { return b.name; });
    number_names(unary.get(), kUnary, [](const Unary& u) { return u.name; });
    number_names(compare.get(), kCompare, [](const char* n) { return n; });
    return Py_BuildValue("{sOsOsOsOsisisi}", "instructions", instructions.get(), "binary", binary.get(), "unary",
                         unary.get(), "compare", compare.get(), "last_use", kLastUse, "own", kOwn, "nothing", kNothing);
  });
}

PyMethodDef functions[] = {
    {"program_format", program_format, METH_NOARGS, "The numbers of the instructions of a Program."},
    {"set_program_failure", set_program_failure, METH_O,
     "The function that is told which step of which program raised what, and gives the exception to raise."},
    {}};

}  // namespace

void add_program(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(new_program)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_repr, reinterpret_cast<void*>(represent)},
      {Py_tp_getset, getset},
      {Py_tp_members, members},
      {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(clear)},
      {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
      {Py_tp_doc, const_cast<char*>("A TorchScript function as flat instructions over registers: Program(name, "
                                    "registers, arguments, constants, code, places).")},
      {0, nullptr}};
  PyType_Spec spec{"cresset.Program", sizeof(PyProgram), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  program_type = reinterpret_cast<PyTypeObject*>(require(PyType_FromSpec(&spec)));
  PyModule_AddObjectRef(module, "Program", reinterpret_cast<PyObject*>(program_type));
  PyModule_AddFunctions(module, functions);
}

}  // namespace cresset
