#include "bind/bind.h"
#include "ops/registry.h"

PYBIND11_MODULE(_core, m) {
  m.doc() = "The C++ engine of samegrad. Use the samegrad package.";
  // A call looks up objects, and the types of its arguments, by address. With more buckets than
  // entries few share one, and a call costs the same at any address.
  pybind11::detail::with_internals(
      [](pybind11::detail::internals& internals) { internals.registered_types_py.reserve(4096); });
  pybind11::detail::with_instance_map(m.ptr(), [](auto& objects) { objects.reserve(4096); });
  samegrad::register_all_ops();
  samegrad::register_errors(m);
  samegrad::register_tensor(m);
  samegrad::register_ops(m);
  samegrad::register_arguments(m);
  samegrad::register_train(m);
  samegrad::register_trace(m);
  samegrad::register_record(m);
  samegrad::register_saved(m);
  samegrad::register_scopes(m);
  samegrad::register_transaction(m);
  samegrad::register_control(m);
  samegrad::register_custom_gradient(m);
  samegrad::register_feed(m);
  samegrad::register_elements(m);
  samegrad::register_runtime(m);
  samegrad::register_world(m);
}
