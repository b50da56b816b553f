// Exceptions of the engine; the bindings turn each kind into its Python class.
#pragma once

#include <charconv>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace samegrad {

enum class ErrorKind {
  kValue,
  kType,
  kRuntime,
  kIndex,
  kNotImplemented,
  kInvalidArgument,  // Python: InvalidArgumentError, a ValueError
  kMemory,           // Python: MemoryError
  kNonFinite         // Python: NonFiniteError, an ArithmeticError
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// A floating point number with as many digits as tell it from its neighbours.
template <class Part>
void print_part(std::ostringstream& out, const Part& part) {
  if constexpr (std::is_floating_point_v<Part>) {
    char digits[64];
    out.write(digits, std::to_chars(digits, digits + sizeof digits, part).ptr - digits);
  } else {
    out << part;
  }
}

// The arguments, one after the other, as text.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (print_part(out, parts), ...);
  return out.str();
}

// Throws Error: "[op_name] message".
template <class... Parts>
[[noreturn]] void fail(ErrorKind kind, std::string_view op_name, const Parts&... message) {
  throw Error(kind, text("[", op_name, "] ", message...));
}

}  // namespace samegrad

// Throws Error of kind kValue or kType if `ok` is false. The message is made only then: texts of
// types and shapes would take a twelfth of a trace's time.
#define SG_CHECK_VALUE(ok, op_name, ...) \
  ((ok) ? void() : ::samegrad::fail(::samegrad::ErrorKind::kValue, op_name, __VA_ARGS__))
#define SG_CHECK_TYPE(ok, op_name, ...) \
  ((ok) ? void() : ::samegrad::fail(::samegrad::ErrorKind::kType, op_name, __VA_ARGS__))
