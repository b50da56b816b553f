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
    .unary = unary_kernel,
    .binary = binary_kernel,
    .select = select_kernel,
    .cast = cast_kernel,
    .row_reduce = row_reduce_kernel,
    .column_reduce = column_reduce_kernel,
    .column_fold = column_fold_kernel,
    .arg_max = arg_max_kernel,
    .arg_min = arg_min_kernel,
    .scan = scan_kernel,
    .affine_scan = affine_scan_kernel,
    .product = product_kernels,
    .pool = pool_kernels,
    .softmax = softmax_kernels,
    .random = random_kernels,
    .random_integers = random_integers_kernel,
    .hash = hash_kernel,
};

}  // namespace
}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE

extern "C" __attribute__((visibility("default"))) const samegrad::KernelTable*
samegrad_kernel_table() {
  return &samegrad::SAMEGRAD_ISA_NAMESPACE::kTable;
}
