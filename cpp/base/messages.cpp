#include "base/messages.h"

#include <mutex>
#include <utility>

namespace samegrad {
namespace {

struct Lines {
  std::mutex mutex;
  std::vector<std::string> waiting;
};

Lines& lines() {
  // Never destroyed: threads may outlive static destruction.
  static auto* instance = new Lines;
  return *instance;
}

}  // namespace

void print_message(std::string line) {
  const std::lock_guard lock(lines().mutex);
  lines().waiting.push_back(std::move(line));
}

std::vector<std::string> take_messages() {
  const std::lock_guard lock(lines().mutex);
  return std::exchange(lines().waiting, {});
}

}  // namespace samegrad
