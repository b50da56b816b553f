#include "base/machine.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "base/error.h"

namespace samegrad {
namespace {

constexpr const char* kVariable = "SAMEGRAD_MACHINE";
constexpr std::int64_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30;

struct MachineField {
  std::string_view name;
  std::int64_t Machine::*member;
  std::int64_t least, most;  // of what is believed
};

constexpr MachineField kTable[] = {
    {"l1", &Machine::l1, 4 * kKiB, kMiB},
    {"l2", &Machine::l2, 32 * kKiB, 64 * kMiB},
    {"l3", &Machine::l3, 64 * kKiB, 4 * kGiB},
    {"threads", &Machine::threads, 1, 4096},
};

// "48K", "2m", at most 2**40; nothing for anything else.
std::optional<std::int64_t> parse_size(std::string_view text) {
  constexpr std::int64_t kMost = std::int64_t(1) << 40;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return {};
  const std::string_view unit(end, std::size_t(text.data() + text.size() - end));
  std::int64_t factor = 0;
  if (unit.empty()) factor = 1;
  if (unit == "k" || unit == "K") factor = kKiB;
  if (unit == "m" || unit == "M") factor = kMiB;
  if (unit == "g" || unit == "G") factor = kGiB;
  if (factor == 0 || value > kMost / factor) return {};
  return value * factor;
}

std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The number of processors in a list like "0-3,8"; 1 for an empty list.
std::int64_t processors_in(std::string_view list) {
  std::int64_t count = 0;
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(item.size() + 1, list.size()));
    const std::size_t dash = item.find('-');
    const auto first = parse_size(item.substr(0, dash));
    const auto last = dash == item.npos ? first : parse_size(item.substr(dash + 1));
    count += first && last && *last >= *first ? *last - *first + 1 : 0;
  }
  return std::max<std::int64_t>(count, 1);
}

void believe(Machine& machine, std::int64_t level, std::int64_t bytes) {
  for (const MachineField& named : kTable) {
    const bool same = named.name.size() == 2 && named.name[1] == char('0' + level);
    if (same && bytes >= named.least && bytes <= named.most) machine.*named.member = bytes;
  }
}

}  // namespace

Machine machine_of(const std::string& folder) {
  Machine machine;
  const std::int64_t siblings = processors_in(line_of(folder + "/topology/thread_siblings_list"));
  for (int i = 0; i < 8; ++i) {
    const std::string cache = folder + "/cache/index" + std::to_string(i);
    const std::string type = line_of(cache + "/type");
    const auto level = parse_size(line_of(cache + "/level"));
    const auto bytes = parse_size(line_of(cache + "/size"));
    if (!level || !bytes || type == "Instruction") continue;
    const std::int64_t sharers = processors_in(line_of(cache + "/shared_cpu_list"));
    const std::int64_t cores = std::max<std::int64_t>(sharers / siblings, 1);
    believe(machine, *level, *level < 3 ? *bytes / cores : *bytes);
  }
  machine.l2 = std::max(machine.l2, machine.l1);
  machine.l3 = std::max(machine.l3, machine.l2);
  return machine;
}

Machine machine_from(std::string_view text, Machine start) {
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const std::size_t equals = item.find('=');
    const auto named = std::ranges::find(kTable, item.substr(0, equals), &MachineField::name);
    SG_CHECK_VALUE(equals != item.npos && named != std::end(kTable), kVariable,
                   "must be name=number,… with l1, l2, l3 (bytes) and threads: got '", item, "'.");
    const auto value = parse_size(item.substr(equals + 1));
    SG_CHECK_VALUE(value && *value >= named->least && *value <= named->most, kVariable, "'",
                   named->name, "' must be an integer from ", named->least, " to ", named->most,
                   " (k, m and g multiply): got '", item.substr(equals + 1), "'.");
    start.*named->member = *value;
  }
  return start;
}

const Machine& machine() {
  static const Machine result = [] {
    const char* text = std::getenv(kVariable);
    return machine_from(text ? text : "", machine_of("/sys/devices/system/cpu/cpu0"));
  }();
  return result;
}

std::string text_of_bytes(std::int64_t bytes) {
  const char* unit = "bytes";
  double value = double(bytes);
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  char text[32];
  const int digits = value == double(std::int64_t(value)) ? 0 : 1;
  std::snprintf(text, sizeof text, "%.*f %s", digits, value, unit);
  return text;
}

std::string to_string(const Machine& machine) {
  return "L1 " + text_of_bytes(machine.l1) + ", L2 " + text_of_bytes(machine.l2) + ", L3 " +
         text_of_bytes(machine.l3);
}

}  // namespace samegrad
