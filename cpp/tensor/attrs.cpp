#include "tensor/attrs.h"

#include <algorithm>

#include "base/error.h"

namespace samegrad {
namespace {

const char* name_of_kind(AttrKind kind) {
  constexpr const char* kNames[] = {"a bool",   "an int",          "a number",
                                    "a string", "a tuple of ints", "a dtype"};
  return kNames[int(kind)];
}

// The object is the draft's own.
template <class T>
T& writable(const T* field) {
  return *const_cast<T*>(field);
}

struct Printer {
  std::string operator()(const bool* value) const { return *value ? "True" : "False"; }
  std::string operator()(const std::int64_t* value) const { return std::to_string(*value); }
  std::string operator()(const Scalar* value) const {
    return value->is_whole() ? text(value->as<std::int64_t>()) : text(value->as<double>());
  }
  std::string operator()(const std::string* value) const { return "'" + *value + "'"; }
  std::string operator()(const Ints* values) const { return to_string(*values); }
  std::string operator()(const DType* value) const { return name_of(*value); }
  std::string operator()(const ChoiceView& value) const { return text("'", value.name(), "'"); }
};

// Fields of one enumeration have one list of names.
bool same_value(const AttrView& a, const AttrView& b) {
  return std::visit(
      [](const auto& x, const auto& y) {
        if constexpr (!std::same_as<decltype(x), decltype(y)>) {
          return false;
        } else if constexpr (std::same_as<decltype(x), const ChoiceView&>) {
          return x.index() == y.index();
        } else {
          return *x == *y;
        }
      },
      a, b);
}

}  // namespace

const void* Attrs::find_base(const AttrSchema& wanted) const {
  const void* object = object_.get();
  for (const AttrSchema* schema = schema_; schema; schema = schema->base) {
    if (schema == &wanted) return object;
    object = schema->as_base(object);
  }
  return nullptr;
}

void Attrs::fail_struct(const AttrSchema& wanted) const {
  fail(ErrorKind::kType, owner_ ? *owner_ : "attributes", "has ",
       schema_ ? schema_->name : "no attributes", " and is asked for ", wanted.name, ".");
}

Attrs Attrs::with_integers(const std::function<std::int64_t(std::int64_t)>& change) const {
  Attrs changed = *this;
  const auto own = [&](std::size_t i) {  // copied before its first change
    if (changed.object_ == object_) changed.object_ = schema_->copy(object_.get());
    return changed.field(i);
  };
  for (std::size_t i = 0; i < fields(); ++i) {
    const AttrView view = field(i);
    if (const auto* integer = std::get_if<const std::int64_t*>(&view)) {
      const std::int64_t value = change(**integer);
      if (value != **integer) writable(std::get<const std::int64_t*>(own(i))) = value;
    } else if (const auto* integers = std::get_if<const Ints*>(&view)) {
      Ints values = **integers;
      for (std::int64_t& value : values) value = change(value);
      if (values != **integers) writable(std::get<const Ints*>(own(i))) = std::move(values);
    }
  }
  return changed;
}

bool Attrs::operator==(const Attrs& other) const {
  if (schema_ != other.schema_) return false;
  return object_ == other.object_ || schema_->equal(object_.get(), other.object_.get());
}

std::uint64_t Attrs::hash() const {
  return schema_ ? schema_->hash(object_.get()) : 0;
}

AttrDraft::AttrDraft(std::string_view op_name, const AttrSchema* schema)
    : op_name_(op_name),
      schema_(schema),
      object_(schema ? schema->copy(nullptr) : nullptr),
      given_(schema ? schema->fields.size() : 0, false) {}

std::size_t AttrDraft::find(std::string_view name) const {
  for (std::size_t i = 0; i < given_.size(); ++i) {
    if (schema_->fields[i].name == name) return i;
  }
  return kNone;
}

void AttrDraft::fail_kind(std::size_t index, const std::string& got) const {
  const AttrSpec& spec = schema_->fields[index];
  fail(ErrorKind::kType, op_name_, "attribute '", spec.name, "' must be ", name_of_kind(spec.kind),
       ": got ", got, ".");
}

void AttrDraft::choose(std::size_t index, const ChoiceView& choice, std::string_view name) {
  const auto found = std::ranges::find(choice.names, name);
  std::string names;
  for (std::size_t i = 0; i < choice.names.size(); ++i) {
    names += text(i ? i + 1 < choice.names.size() ? ", " : " or " : "", "'", choice.names[i], "'");
  }
  SG_CHECK_VALUE(found != choice.names.end(), op_name_, schema_->fields[index].name, " must be ",
                 names, ": got '", name, "'.");
  writable(static_cast<const std::uint8_t*>(choice.number)) =
      std::uint8_t(found - choice.names.begin());
}

template <class T>
void AttrDraft::set(std::string_view name, T value) {
  const std::size_t index = find(name);
  SG_CHECK_TYPE(index != kNone, op_name_, "there is no attribute '", name, "'.");
  const AttrView view = schema_->field(object_.get(), index);
  const ChoiceView* choice = std::get_if<ChoiceView>(&view);
  if (const auto* field = std::get_if<const T*>(&view)) {
    writable(*field) = std::move(value);
  } else if constexpr (std::same_as<T, std::string>) {
    if (!choice) fail_kind(index, Printer()(&value));
    choose(index, *choice, value);
  } else {
    fail_kind(index, Printer()(&value));
  }
  given_[index] = true;
}

template void AttrDraft::set(std::string_view, bool);
template void AttrDraft::set(std::string_view, std::int64_t);
template void AttrDraft::set(std::string_view, Scalar);
template void AttrDraft::set(std::string_view, std::string);
template void AttrDraft::set(std::string_view, Ints);
template void AttrDraft::set(std::string_view, DType);

void AttrDraft::copy_field(std::size_t index, const AttrView& from) {
  std::visit(
      [&](const auto& value) {
        if constexpr (std::same_as<decltype(value), const ChoiceView&>) {
          set(schema_->fields[index].name, std::string(value.name()));
        } else {
          set(schema_->fields[index].name, *value);
        }
      },
      from);
}

bool AttrDraft::take(const Attrs& from) {
  const std::shared_ptr<void> start = from.schema_ ? from.schema_->copy(nullptr) : nullptr;
  bool all = true;
  for (std::size_t i = 0; i < from.fields(); ++i) {
    const std::size_t index = find(from.schema_->fields[i].name);
    if (index != kNone) {
      copy_field(index, from.field(i));
    } else {
      all = all && same_value(from.field(i), from.schema_->field(start.get(), i));
    }
  }
  return all;
}

Attrs AttrDraft::finish() {
  for (std::size_t i = 0; i < given_.size(); ++i) {
    const AttrSpec& spec = schema_->fields[i];
    SG_CHECK_TYPE(given_[i] || !spec.required, op_name_, "attribute '", spec.name,
                  "' is required.");
  }
  Attrs attrs;
  attrs.schema_ = schema_;
  attrs.object_ = std::move(object_);
  return attrs;
}

std::string to_string(const Ints& values) {
  std::string out = "(";
  for (std::size_t i = 0; i < values.size(); ++i) {
    out += (i ? ", " : "") + std::to_string(values[i]);
  }
  return out + (values.size() == 1 ? ",)" : ")");
}

std::string to_string(const AttrView& value) {
  return std::visit(Printer{}, value);
}

std::string to_string(const Attrs& attrs) {
  std::string out;
  for (std::size_t i = 0; i < attrs.fields(); ++i) {
    out += text(i ? ", " : "", attrs.schema()->fields[i].name, "=", to_string(attrs.field(i)));
  }
  return out;
}

}  // namespace samegrad
