// Attribute schema: the list of fields of an attribute struct, with which the engine compares,
// hashes, prints, copies and sets it by name.
//
//   struct ReduceAttrs {
//     Ints axes;
//     bool keepdims = false;
//
//     static constexpr auto fields() {
//       return std::tuple(required("axes", &ReduceAttrs::axes, "The axes to reduce."),
//                         defaulted("keepdims", &ReduceAttrs::keepdims, "Whether they stay."));
//     }
//   };
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/hasher.h"
#include "base/scalar.h"

namespace samegrad {

using Ints = std::vector<std::int64_t>;

// The kind of value that Python passes for a field; an enumeration is a string there.
enum class AttrKind : std::uint8_t { kFlag, kInteger, kNumber, kString, kIntegers, kDType };

// A field of a struct; its default is what the struct starts with.
template <class Owner, class T>
struct AttrField {
  using Type = T;
  const char* name;
  T Owner::*member;
  const char* doc;
  bool required;
};
template <class Owner, class T>
constexpr AttrField<Owner, T> required(const char* name, T Owner::*member, const char* doc) {
  return {name, member, doc, true};
}
template <class Owner, class T>
constexpr AttrField<Owner, T> defaulted(const char* name, T Owner::*member, const char* doc) {
  return {name, member, doc, false};
}

// A struct that lists its fields. One that is derived from another may be read as that
// (`using Base`), and lists the fields of it that it has. Members that passes make and nobody sets
// by name are in the tuple internal(): they are compared and, by add_to(Hasher&), hashed.
template <class T>
concept AttrStruct = requires {
  T::fields();
};

// An enumeration of one byte, counted from 0, with `constexpr std::array<const char*, n>
// names_of(E)` beside it.
template <class T>
concept AttrChoice = std::is_enum_v<T> && !std::same_as<T, DType> && sizeof(T) == 1;
template <AttrChoice E>
inline constexpr auto kChoiceNames = names_of(E{});

// A field of some object.
struct ChoiceView {
  const void* number;  // of one byte
  std::span<const char* const> names;

  std::uint8_t index() const { return *static_cast<const std::uint8_t*>(number); }
  const char* name() const { return names[index()]; }
};
using AttrView = std::variant<const bool*, const std::int64_t*, const Scalar*, const std::string*,
                              const Ints*, const DType*, ChoiceView>;

struct AttrSpec {
  const char* name;
  AttrKind kind;
  const char* doc;
  bool required;  // the caller must give it
};

struct AttrSchema {
  std::string_view name;  // of the struct
  std::span<const AttrSpec> fields;
  const AttrSchema* base;  // null: none
  const void* (*as_base)(const void* object);
  bool (*equal)(const void* a, const void* b);
  std::uint64_t (*hash)(const void* object);
  AttrView (*field)(const void* object, std::size_t index);
  // Copies the object; null: the struct with its defaults.
  std::shared_ptr<void> (*copy)(const void* object);
};

namespace detail {

template <class T>
constexpr AttrKind attr_kind() {
  if constexpr (std::same_as<T, bool>) return AttrKind::kFlag;
  if constexpr (std::same_as<T, std::int64_t>) return AttrKind::kInteger;
  if constexpr (std::same_as<T, Scalar>) return AttrKind::kNumber;
  if constexpr (std::same_as<T, std::string> || AttrChoice<T>) return AttrKind::kString;
  if constexpr (std::same_as<T, Ints>) return AttrKind::kIntegers;
  if constexpr (std::same_as<T, DType>) return AttrKind::kDType;
}

template <class T>
AttrView view_of(const T& value) {
  if constexpr (AttrChoice<T>) {
    return ChoiceView{&value, kChoiceNames<T>};
  } else {
    return &value;
  }
}

template <class T>
void add_to(Hasher& hash, const T& value) {
  if constexpr (std::same_as<T, Scalar>) {
    hash.number(value.is_whole());
    hash.number(value.bits());
  } else if constexpr (requires { value.add_to(hash); }) {
    value.add_to(hash);
  } else if constexpr (std::same_as<T, std::string> || std::same_as<T, Ints>) {
    hash.number(value.size());
    hash.bytes(value.data(), value.size() * sizeof value[0]);
  } else {
    hash.number(value);
  }
}

// "ReduceAttrs".
template <class T>
constexpr std::string_view name_of_struct() {
  std::string_view name = std::source_location::current().function_name();
  name = name.substr(name.find("T = ") + 4);
  name = name.substr(0, name.find_first_of(";]"));
  return name.substr(name.rfind(':') + 1);
}

template <class T>
struct Schema {
  static constexpr auto kFields = T::fields();
  static constexpr std::size_t kCount = std::tuple_size_v<decltype(kFields)>;
  static constexpr std::array<AttrSpec, kCount> kSpecs = std::apply(
      [](const auto&... f) {
        return std::array{AttrSpec{f.name, attr_kind<typename std::decay_t<decltype(f)>::Type>(),
                                   f.doc, f.required}...};
      },
      kFields);

  static const T& of(const void* object) { return *static_cast<const T*>(object); }

  // The members of all fields, then the internal ones.
  static constexpr auto members() {
    const auto visible =
        std::apply([](const auto&... f) { return std::tuple(f.member...); }, kFields);
    if constexpr (requires { T::internal(); }) {
      return std::tuple_cat(visible, T::internal());
    } else {
      return visible;
    }
  }
  static bool equal(const void* a, const void* b) {
    return std::apply([&](auto... member) { return ((of(a).*member == of(b).*member) && ...); },
                      members());
  }
  static std::uint64_t hash(const void* object) {
    Hasher hash;
    std::apply([&](auto... member) { (add_to(hash, of(object).*member), ...); }, members());
    return hash.state();
  }
  static AttrView field(const void* object, std::size_t index) {
    return std::apply(
        [&](const auto&... f) { return std::array{view_of(of(object).*f.member)...}[index]; },
        kFields);
  }
  static std::shared_ptr<void> copy(const void* object) {
    return object ? std::make_shared<T>(of(object)) : std::make_shared<T>();
  }
  static const void* as_base(const void* object) {
    if constexpr (requires { typename T::Base; }) {
      return static_cast<const typename T::Base*>(&of(object));
    } else {
      return object;
    }
  }
  static constexpr const AttrSchema* base();
};

}  // namespace detail

template <AttrStruct T>
inline constexpr AttrSchema kAttrSchema = {detail::name_of_struct<T>(), detail::Schema<T>::kSpecs,
                                           detail::Schema<T>::base(),   detail::Schema<T>::as_base,
                                           detail::Schema<T>::equal,    detail::Schema<T>::hash,
                                           detail::Schema<T>::field,    detail::Schema<T>::copy};

template <class T>
constexpr const AttrSchema* detail::Schema<T>::base() {
  if constexpr (requires { typename T::Base; }) return &kAttrSchema<typename T::Base>;
  return nullptr;
}

// The attribute schema of an op definition.
template <AttrStruct T>
constexpr const AttrSchema* schema_of() {
  return &kAttrSchema<T>;
}

}  // namespace samegrad
