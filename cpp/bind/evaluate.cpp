#include "bind/evaluate.h"

#include <algorithm>

#include "base/error.h"
#include "bind/convert.h"

namespace py = pybind11;

namespace samegrad {
namespace {

constexpr std::size_t kShown = 8;          // replicas
constexpr std::size_t kShownLetters = 60;  // of each

bool equal(const Array& a, const Array& b) {
  return a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

// "0: 1.5, 1: 2.0"
std::string listed(const PerReplica<Array>& arrays) {
  std::string text;
  for (std::size_t r = 0; r < std::min(arrays.size(), kShown); ++r) {
    std::string value = py::str(numpy_view(arrays[r]));
    std::ranges::replace(value, '\n', ' ');
    if (value.size() > kShownLetters) value = value.substr(0, kShownLetters) + "...";
    text += (r ? ", " : "") + std::to_string(r) + ": " + value;
  }
  return arrays.size() > kShown ? text + ", ..." : text;
}

}  // namespace

PerReplica<Array> evaluate(const Tensor& tensor, const char* op_name, bool anywhere) {
  if (!tensor.symbolic() || !tensor.trace->evaluates()) return {concrete(tensor, op_name)};
  PerReplica<Array> arrays = tensor.trace->evaluate(tensor.value, anywhere);
  const auto same = [&](const Array& array) { return equal(array, arrays[0]); };
  if (std::ranges::all_of(arrays, same)) return {arrays[0]};
  return arrays;
}

Array known(const Tensor& tensor, const char* op_name) {
  if (!tensor.symbolic()) return tensor.array;
  const PerReplica<Array> arrays = evaluate(tensor, op_name);
  if (arrays.is_shared()) return arrays[0];
  fail(ErrorKind::kType, op_name, "replicas have different values: got ", listed(arrays),
       "; print the tensor to see them all, make one of them with "
       "replica_context.all_reduce(...), or decide with samegrad.cond.");
}

}  // namespace samegrad
