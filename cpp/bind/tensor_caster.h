// Type caster: converts Python arguments to tensors.
#pragma once

#include <pybind11/pybind11.h>

#include "train/tensor.h"

namespace samegrad {

// True if the constructor has run: `Tensor.__new__(Tensor)` returns an object without one.
inline bool is_made(pybind11::handle object) {
  auto* const self = reinterpret_cast<pybind11::detail::instance*>(object.ptr());
  return self->get_value_and_holder().holder_constructed();
}

}  // namespace samegrad

namespace pybind11::detail {

// Rejects objects whose constructor has not run: pybind11 gives them uninitialized memory.
template <>
class type_caster<samegrad::Tensor> : public type_caster_base<samegrad::Tensor> {
 public:
  bool load(handle source, bool convert) {
    if (!type_caster_base<samegrad::Tensor>::load(source, convert)) return false;
    return source.is_none() || samegrad::is_made(source);
  }
};

}  // namespace pybind11::detail
