#include "tensor/non_addressable.h"

namespace samegrad {
namespace {

// Never destroyed: arrays may outlive static objects.
const std::shared_ptr<Buffer>& no_memory() {
  static const auto* buffer =
      new std::shared_ptr<Buffer>(std::make_shared<Buffer>(nullptr, 0, [] {}));
  return *buffer;
}

}  // namespace

Array non_addressable_array(DType dtype, const Shape& shape) {
  return Array(dtype, shape, no_memory());
}

bool is_non_addressable(const Array& array) {
  return array.buffer() == no_memory();
}

}  // namespace samegrad
