#include "dispatch/signature.h"

#include <cstdlib>

namespace cresset {
namespace {

std::string trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return std::string(s);
}

// Splits at commas outside of brackets.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      if (std::string part = trim(text.substr(start, i - start)); !part.empty()) parts.push_back(part);
      start = i + 1;
    } else if (text[i] == '(' || text[i] == '[') {
      ++depth;
    } else if (text[i] == ')' || text[i] == ']') {
      --depth;
    }
  }
  return parts;
}

ArgType parse_type(const std::string& t) {
  static const std::pair<const char*, ArgType> table[] = {
      {"Tensor", ArgType::tensor},     {"Tensor[]", ArgType::tensors},
      {"Tensor?[]", ArgType::tensors}, {"Operand", ArgType::tensor_or_scalar},
      {"Scalar", ArgType::scalar},     {"int", ArgType::integer},
      {"SymInt", ArgType::integer},    {"float", ArgType::real},
      {"bool", ArgType::boolean},      {"float[]", ArgType::reals},
      {"ScalarType", ArgType::dtype},  {"Device", ArgType::device},
      {"Layout", ArgType::layout},     {"MemoryFormat", ArgType::memory_format},
      {"str", ArgType::text},          {"Generator", ArgType::generator},
      {"object", ArgType::object}};
  for (auto& [name, type] : table)
    if (t == name) return type;
  if (t.starts_with("int[")) return ArgType::integers;
  fail("signature: unknown type '", t, "'");
}

// Sets p.default_value. Lists and texts are bound in Signature::parse, when the parameter has found its place.
void parse_default(Parameter& p) {
  const std::string& d = p.default_text;
  Value& v = p.default_value;
  if (d == "None") return;
  if (d == "True" || d == "False") {
    v = Scalar(d == "True");
  } else if (p.type == ArgType::integers) {
    if (d.front() == '[' || d.front() == '(') {
      for (auto& part : split(std::string_view(d).substr(1, d.size() - 2)))
        p.default_integers.push_back(std::atoll(part.c_str()));
    } else {
      p.default_integers.push_back(std::atoll(d.c_str()));
    }
  } else if (p.type == ArgType::text) {
    v.kind = Kind::text;
  } else if (p.type == ArgType::memory_format) {
    v.kind = Kind::memory_format;
    v.memory_format_ = d == "preserve_format" ? MemoryFormat::preserve : MemoryFormat::contiguous;
  } else if (p.type == ArgType::real || d.find_first_of(".e") != std::string::npos || d == "inf" || d == "-inf") {
    v = Scalar(std::strtod(d.c_str(), nullptr));
  } else {
    v = Scalar(static_cast<int64_t>(std::atoll(d.c_str())));
  }
}

}  // namespace

Signature Signature::parse(const std::string& text) {
  Signature s;
  s.text = text;
  const size_t open = text.find('('), arrow = text.rfind("->");
  invariant(open != std::string::npos && arrow != std::string::npos, "malformed signature " + text);
  s.name = text.substr(0, open);
  if (const size_t dot = s.name.find('.'); dot != std::string::npos) {
    s.overload = s.name.substr(dot + 1);
    s.name.resize(dot);
  }
  const size_t close = text.rfind(')', arrow);
  bool keyword_only = false;
  for (const std::string& part : split(std::string_view(text).substr(open + 1, close - open - 1))) {
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    Parameter p;
    p.keyword_only = keyword_only;
    const size_t space = part.find(' ');
    p.type_text = part.substr(0, space);
    std::string type = p.type_text;
    p.name = trim(std::string_view(part).substr(space));
    if (const size_t equals = p.name.find('='); equals != std::string::npos) {
      p.default_text = p.name.substr(equals + 1);
      p.name.resize(equals);
      p.has_default = true;
    }
    if (type.ends_with("?")) {
      p.optional = true;
      type.pop_back();
    }
    p.varargs = type == "int[...]";
    p.single = type.starts_with("int[") && type != "int[]" && type != "int[...]";
    p.one_element = type == "SymInt";
    p.type = parse_type(type);
    if (p.has_default) parse_default(p);
    s.parameters.push_back(std::move(p));
  }
  for (Parameter& p : s.parameters) {
    if (p.type == ArgType::integers && p.has_default && p.default_text != "None")
      p.default_value = Value(DimsView(p.default_integers));
    if (p.type == ArgType::text && p.has_default && p.default_text != "None") {
      p.default_value.text_ = p.default_text.c_str();
      p.default_value.count = static_cast<int64_t>(p.default_text.size());
    }
  }
  const std::string result = trim(std::string_view(text).substr(arrow + 2));
  if (result.front() == '(') {
    s.results_are_tuple = true;
    for (auto& part : split(std::string_view(result).substr(1, result.size() - 2))) {
      const size_t space = part.find(' ');
      s.results.push_back(space == std::string::npos ? "" : part.substr(space + 1));
    }
  } else if (result == "Tensor[]") {
    s.results_are_list = true;
  } else if (result != "None") {
    s.results.push_back("");
  }
  return s;
}

int Signature::index_of(std::string_view name) const {
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == name) return static_cast<int>(i);
  return -1;
}

}  // namespace cresset
