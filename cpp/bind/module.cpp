#include "bind/bind.h"
#include "ops/registry.h"

PYBIND11_MODULE(_core, m) {
  m.doc() = "The C++ engine of samegrad. Use the samegrad package.";
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
