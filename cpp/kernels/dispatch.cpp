#include "kernels/dispatch.h"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "base/error.h"

namespace samegrad {
namespace {

using TableFunction = const KernelTable* (*)();

struct InstalledVariant {
  const char* suffix;  // of the file name
  const char* name;
  bool (*runs_here)();
};

// Rows of variants.def by processor.
#if defined(__x86_64__)
#define SAMEGRAD_ON_x86_64(...) __VA_ARGS__,
#define SAMEGRAD_ON_aarch64(...)
#define SAMEGRAD_ON_any(...)
#elif defined(__aarch64__)
#define SAMEGRAD_ON_x86_64(...)
#define SAMEGRAD_ON_aarch64(...) __VA_ARGS__,
#define SAMEGRAD_ON_any(...) __VA_ARGS__,
#else
#define SAMEGRAD_ON_x86_64(...)
#define SAMEGRAD_ON_aarch64(...)
#define SAMEGRAD_ON_any(...) __VA_ARGS__,
#endif

#define CPU(level) __builtin_cpu_supports(level) != 0
constexpr InstalledVariant kVariants[] = {
#define SAMEGRAD_VARIANT(suffix, name, processor, fused, simd, flags, runs_here) \
  SAMEGRAD_ON_##processor({#suffix, name, [] { return runs_here; }})
#include "kernels/variants.def"
#undef SAMEGRAD_VARIANT
};
#undef CPU

const InstalledVariant& find_variant(const std::string& name) {
  std::string known;
  for (const InstalledVariant& variant : kVariants) {
    if (name == variant.name || name == variant.suffix) return variant;
    known += (known.empty() ? "" : ", ") + std::string(variant.name);
  }
  fail(ErrorKind::kRuntime, "kernels", "unknown instruction-set variant '", name,
       "'; set SAMEGRAD_ISA to one of: ", known, ", or leave it unset.");
}

std::string kernel_folder() {
  if (const char* folder = std::getenv("SAMEGRAD_KERNEL_DIR")) return folder;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&kernels), &info) == 0 || info.dli_fname == nullptr) {
    return ".";
  }
  const std::string file = info.dli_fname;
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? "." : file.substr(0, slash);
}

// RTLD_LOCAL and the single exported symbol keep the variants' templates apart.
const KernelTable& open_variant(const InstalledVariant& variant) {
  const std::string file =
      kernel_folder() + "/libsamegrad_kernels_" + std::string(variant.suffix) + ".so";
  void* object = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* problem = object == nullptr ? dlerror() : nullptr;
  if (object != nullptr) {
    const auto table = reinterpret_cast<TableFunction>(dlsym(object, "samegrad_kernel_table"));
    if (table != nullptr && table()->interface == SAMEGRAD_KERNEL_INTERFACE) return *table();
    problem = table != nullptr ? "it belongs to another build of the engine" : dlerror();
  }
  fail(ErrorKind::kRuntime, "kernels", "cannot load the ", variant.name, " kernels from ", file,
       ": ", problem == nullptr ? "no table" : problem,
       "; reinstall the package, or set SAMEGRAD_KERNEL_DIR to the folder that holds them.");
}

}  // namespace

std::vector<std::string> isa_variants_supported() {
  std::vector<std::string> names;
  for (const InstalledVariant& variant : kVariants) {
    if (variant.runs_here()) names.emplace_back(variant.name);
  }
  return names;
}

std::map<std::string, bool> isa_fused() {
  return {
#define SAMEGRAD_VARIANT(suffix, name, processor, fused, simd, flags, runs_here) {name, fused != 0},
#include "kernels/variants.def"
#undef SAMEGRAD_VARIANT
  };
}

const KernelTable& load_kernels(const std::string& name) {
  const InstalledVariant& variant = find_variant(name);
  if (!variant.runs_here()) {
    std::string here;
    for (const std::string& other : isa_variants_supported()) here += " " + other;
    fail(ErrorKind::kRuntime, "kernels", "this machine does not run ", variant.name,
         " instructions; it runs:", here.empty() ? " none" : here,
         ". Choose one of these with SAMEGRAD_ISA, or leave it unset.");
  }
  static std::mutex mutex;
  static std::map<std::string, const KernelTable*> loaded;
  const std::lock_guard<std::mutex> lock(mutex);
  const KernelTable*& table = loaded[variant.name];
  if (table == nullptr) table = &open_variant(variant);
  return *table;
}

void refuse_kernel(const char* title, DType dtype) {
  fail(ErrorKind::kType, "kernels", "there are no ", title, " kernels for ", name_of(dtype),
       " in the table of ", kernels().isa, "; cast the tensor to another dtype first.");
}

const KernelTable& kernels() {
  static const KernelTable& chosen = []() -> const KernelTable& {
    const char* pinned = std::getenv("SAMEGRAD_ISA");
    if (pinned != nullptr && *pinned != '\0') return load_kernels(pinned);
    const std::vector<std::string> supported = isa_variants_supported();
    if (supported.empty()) {
      fail(ErrorKind::kRuntime, "kernels", "this machine runs none of the variants; the oldest, ",
           kVariants[0].name, ", needs SSE4.2 and POPCNT.");
    }
    return load_kernels(supported.back());
  }();
  return chosen;
}

}  // namespace samegrad
