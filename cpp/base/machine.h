// The machine that plans are made for. It chooses among plans of equal bits: what a reduction
// order depends on is in base/reduction_order.h, once for all machines.
//
// SAMEGRAD_MACHINE="l2=256k,threads=4" describes another one: l1, l2, l3 (bytes; k, m and g
// multiply) and threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace samegrad {

struct Machine {
  std::int64_t l1 = 32 << 10;  // bytes of data that one core has for itself
  std::int64_t l2 = 1 << 20;   // bytes of one core; a cache that cores share counts in equal parts
  std::int64_t l3 = 8 << 20;   // of all cores together
  std::int64_t threads = 0;    // 0: as many as the process may use
  bool operator==(const Machine&) const = default;
};

// The machine that the system describes, with typical values for what it leaves out; read once.
// ValueError for an environment variable that cannot be parsed.
const Machine& machine();

// The machine described by a folder like /sys/devices/system/cpu/cpu0. Impossible sizes are
// ignored.
Machine machine_of(const std::string& folder);

// Changed by a text as SAMEGRAD_MACHINE has it; "" changes nothing.
Machine machine_from(std::string_view text, Machine start);

// "L1 32 KiB, L2 1 MiB, L3 32 MiB"
std::string to_string(const Machine& machine);
// "512 KiB"; to a tenth.
std::string text_of_bytes(std::int64_t bytes);

}  // namespace samegrad
