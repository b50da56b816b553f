#include <pybind11/stl.h>

#include "base/numerics_version.h"
#include "bind/bind.h"
#include "data/decoded_image.h"
#include "kernels/dispatch.h"
#include "runtime/threads.h"
#include "tensor/buffer_pool.h"

namespace py = pybind11;

namespace samegrad {

void register_runtime(py::module_& m) {
  m.attr("__version__") = SAMEGRAD_VERSION;
  m.def(
      "isa", [] { return std::string(kernels().isa); }, "The instruction-set variant in use.");
  m.def(
      "reduction_order", [] { return kReductionOrder; }, "Version of the reduction order.");
  m.def(
      "function_version", [] { return kFunctionVersion; },
      "Version of the bits of elementwise and special functions.");
  m.def("isa_supported", &isa_variants_supported);
  m.def("isa_fused", &isa_fused, "Whether each variant of any processor has fused multiply-add.");
  m.def("thread_count", &thread_count);
  m.def("set_thread_count", &set_thread_count, py::arg("threads"));
  m.def("set_core_share", &set_core_share, py::arg("cores"));
  m.def("live_bytes", &Buffer::live_bytes, "What all arrays, and memory kept for runs, hold.");
  m.def(
      "idle_bytes", [] { return BufferPool::instance().idle_bytes(); },
      "Memory that is kept for the next runs.");
  m.def("build_info", [] {
    py::dict info;
    info["compiler"] = __VERSION__;
    info["tbb"] = tbb_version();
    info["pybind11"] = PYBIND11_TOSTRING(PYBIND11_VERSION_MAJOR) "." PYBIND11_TOSTRING(
        PYBIND11_VERSION_MINOR) "." PYBIND11_TOSTRING(PYBIND11_VERSION_MICRO);
    info["jpeg"] = jpeg_library();
    info["png"] = png_library();
    return info;
  });
}

}  // namespace samegrad
