// The table of one instruction-set variant: the only symbol its shared object exports.
#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

struct Variant {
  const char* name;
  bool fused;
};
namespace rows {
#define SAMEGRAD_VARIANT(suffix, name, processor, fused, simd, flags, runs_here) \
  [[maybe_unused]] constexpr Variant suffix{name, fused};
#include "kernels/variants.def"
#undef SAMEGRAD_VARIANT
}  // namespace rows

constexpr KernelTable kTable = {
    .interface = SAMEGRAD_KERNEL_INTERFACE,
    .isa = rows::SAMEGRAD_ISA_NAMESPACE.name,
    .fused = rows::SAMEGRAD_ISA_NAMESPACE.fused,
#define SAMEGRAD_KERNEL(name, Kernel, title, key, function) .name = {title, name##_kernel},
#include "kernels/kernels.def"
};

}  // namespace
}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE

extern "C" __attribute__((visibility("default"))) const samegrad::KernelTable*
samegrad_kernel_table() {
  return &samegrad::SAMEGRAD_ISA_NAMESPACE::kTable;
}
