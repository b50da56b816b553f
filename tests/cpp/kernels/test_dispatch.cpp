// Choosing and loading instruction-set variants.
#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "kernels/variants.h"

namespace samegrad {
namespace {

TEST("the table in use is the best the machine runs, or the pinned one") {
  const std::vector<std::string> names = isa_variants_supported();
  CHECK(!names.empty());
  const char* pinned = std::getenv("SAMEGRAD_ISA");
  const std::string expected = pinned == nullptr ? names.back() : load_kernels(pinned).isa;
  CHECK_EQ(std::string(kernels().isa), expected);
}

TEST("a variant is loaded once, under its long and its short name") {
  for (const std::string& name : isa_variants_supported()) {
    const KernelTable& table = load_kernels(name);
    CHECK_EQ(std::string(table.isa), name);
    CHECK_EQ(&table, &load_kernels(name.substr(name.rfind('-') + 1)));
  }
}

std::string message_of(const std::string& name) {
  try {
    load_kernels(name);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kRuntime);
    return error.what();
  }
  return "";
}

TEST("an unknown variant, or one the machine lacks, is an error that names the choices") {
  CHECK(message_of("x87").find("SAMEGRAD_ISA") != std::string::npos);
  const std::vector<std::string> names = isa_variants_supported();
  if (std::find(names.begin(), names.end(), "x86-64-v2") == names.end()) return;
  if (std::find(names.begin(), names.end(), "x86-64-v4") != names.end()) return;
  CHECK(message_of("v4").find("does not run x86-64-v4") != std::string::npos);
}

// True if some dtype has a kernel of the family; the first function where the key has one.
template <class Kernel, class... Key>
bool is_found(const KernelFamily<Kernel*(Key...)>& family) {
  const auto key = []<class T>(T, DType dtype) {
    if constexpr (std::is_same_v<T, DType>)
      return dtype;
    else
      return T{};
  };
  return std::any_of(std::begin(kAllDTypes), std::end(kAllDTypes),
                     [&](DType dtype) { return family.find(key(Key{}, dtype)...) != nullptr; });
}

TEST("each variant has a kernel for each row") {
  for_each_variant([](const KernelTable& table) {
#define SAMEGRAD_KERNEL(name, Kernel, title, key, function) \
  CHECK(is_found(table.name), table.isa, " ", #name);
#include "kernels/kernels.def"
  });
}

TEST("kernels that a dtype does not have are an error that names both, not a null pointer") {
  const auto refusal = [](auto ask) -> std::string {
    try {
      ask();
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kType);
      return error.what();
    }
    return "";
  };
  const std::string product = refusal([] { kernels().product(DType::kBool); });
  CHECK(product.find("no product kernels for bool") != std::string::npos, product);
  const std::string sum = refusal([] { kernels().row_reduce(ReduceFn::kSum, DType::kBool); });
  CHECK(sum.find("no reduction kernels for bool") != std::string::npos, sum);
  const std::string beyond = refusal([] { kernels().select(DType(kAll)); });
  CHECK(beyond.find("no select kernels for no dtype") != std::string::npos, beyond);
  CHECK_EQ(refusal([] { kernels().softmax(DType::kFloat64); }), "");
}

}  // namespace
}  // namespace samegrad

CHECK_MAIN
