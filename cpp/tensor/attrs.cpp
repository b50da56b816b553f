#include "tensor/attrs.h"

#include "base/error.h"

namespace samegrad {

void Attrs::set(std::string_view name, AttrValue value) {
  for (auto& item : items_) {
    if (item.first == name) {
      item.second = std::move(value);
      return;
    }
  }
  items_.emplace_back(std::string(name), std::move(value));
}

namespace {
struct Printer {
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(Number value) const {
    return value.is_whole() ? text(value.as<std::int64_t>()) : text(value.as<double>());
  }
  std::string operator()(const std::string& value) const { return "'" + value + "'"; }
  std::string operator()(DType value) const { return name_of(value); }
  std::string operator()(const std::shared_ptr<const Graph>& graph) const {
    return text("graph at ", static_cast<const void*>(graph.get()));
  }
  std::string operator()(const CanBeWithoutValue& /*value*/) const { return {}; }
  std::string operator()(const std::vector<std::int64_t>& values) const {
    std::string out = "(";
    for (std::size_t i = 0; i < values.size(); ++i) {
      out += (i ? ", " : "") + std::to_string(values[i]);
    }
    return out + (values.size() == 1 ? ",)" : ")");
  }
};
}  // namespace

std::string to_string(const AttrValue& value) {
  return std::visit(Printer{}, value);
}

}  // namespace samegrad
