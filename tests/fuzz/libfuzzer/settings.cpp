// Fuzz target: the values of SAMEGRAD_MACHINE and SAMEGRAD_THRESHOLDS.
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/machine.h"
#include "base/thresholds.h"

namespace {

std::string setting_of(const samegrad::Machine& machine) {
  return "l1=" + std::to_string(machine.l1) + ",l2=" + std::to_string(machine.l2) +
         ",l3=" + std::to_string(machine.l3) +
         (machine.threads == 0 ? "" : ",threads=" + std::to_string(machine.threads));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace samegrad;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Machine usual;
  try {
    const Machine machine = machine_from(text, usual);
    if (machine_from(setting_of(machine), usual) != machine) __builtin_trap();
  } catch (const Error&) {
  }
  try {
    (void)thresholds_from(text, usual);
  } catch (const Error&) {
  }
  return 0;
}
