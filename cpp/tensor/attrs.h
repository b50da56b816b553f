// Named attributes of an operation ("strides", "axis", …), in the order of its schema.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/number.h"

namespace samegrad {

struct Graph;  // ir/graph.h: the body of a branch or loop

// Never held. libstdc++ takes a variant of the other types for one that is never without a value,
// and where memory is missing for a copy it destroys what was not made.
struct CanBeWithoutValue {
  CanBeWithoutValue() = default;
  CanBeWithoutValue(const CanBeWithoutValue& /*other*/) noexcept {}
  CanBeWithoutValue& operator=(const CanBeWithoutValue& /*other*/) noexcept { return *this; }
  bool operator==(const CanBeWithoutValue& /*other*/) const { return true; }
};

using AttrValue = std::variant<bool, std::int64_t, Number, std::string, std::vector<std::int64_t>,
                               DType, std::shared_ptr<const Graph>, CanBeWithoutValue>;

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, AttrValue>> items)
      : items_(items.begin(), items.end()) {}

  void set(std::string_view name, AttrValue value);
  // Inline, as kernels ask by names that the compiler knows: it then compares a word or two.
  [[gnu::always_inline]] const AttrValue* find(std::string_view name) const {
    for (const auto& item : items_) {
      if (item.first.size() == name.size() &&
          __builtin_memcmp(item.first.data(), name.data(), name.size()) == 0) {
        return &item.second;
      }
    }
    return nullptr;
  }

  // The attribute must exist with this type; anything else is a bug of the engine.
  bool flag(std::string_view name) const { return get<bool>(name); }
  std::int64_t integer(std::string_view name) const { return get<std::int64_t>(name); }
  Number number(std::string_view name) const { return get<Number>(name); }
  const std::string& string(std::string_view name) const { return get<std::string>(name); }
  const std::vector<std::int64_t>& integers(std::string_view name) const {
    return get<std::vector<std::int64_t>>(name);
  }
  DType dtype(std::string_view name) const { return get<DType>(name); }
  const Graph& graph(std::string_view name) const {
    return *get<std::shared_ptr<const Graph>>(name);
  }

  const std::vector<std::pair<std::string, AttrValue>>& items() const { return items_; }
  bool operator==(const Attrs&) const = default;

 private:
  template <class T>
  const T& get(std::string_view name) const {
    return std::get<T>(*find(name));
  }

  std::vector<std::pair<std::string, AttrValue>> items_;
};

std::string to_string(const AttrValue& value);

}  // namespace samegrad
