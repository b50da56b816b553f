#include "train/current.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

namespace samegrad {
namespace {

struct Entered {
  std::uint64_t number;
  Current before;
};

thread_local Current now;
thread_local std::vector<Entered> entered;  // the innermost last

bool is_entered(std::uint64_t number) {
  return std::ranges::find(entered, number, &Entered::number) != entered.end();
}

}  // namespace

const Current& current() {
  return now;
}

std::shared_ptr<Trace> current_trace() {
  return now.trace;
}

Current with_trace(std::shared_ptr<Trace> trace) {
  return {std::move(trace), now.random, now.context};
}

void replace_current(const std::shared_ptr<Trace>& old, const std::shared_ptr<Trace>& fresh) {
  if (now.trace == old) now.trace = fresh;
  for (Entered& e : entered) {
    if (e.before.trace == old) e.before.trace = fresh;
  }
}

Scope::Scope(Current next) {
  static std::atomic<std::uint64_t> last{0};
  number_ = ++last;
  entered.reserve(entered.size() + 1);
  entered.push_back({number_, std::exchange(now, std::move(next))});
}

Scope::~Scope() {
  // One by one: a released state may be the last owner of Python objects, whose destructors may
  // return here.
  while (is_entered(number_)) {
    const bool last = entered.back().number == number_;
    const Current gone = std::exchange(now, std::move(entered.back().before));
    entered.pop_back();
    if (last) break;
  }
}

RandomState& random_state() {
  static RandomState state;
  return now.random ? *now.random : state;
}

}  // namespace samegrad
