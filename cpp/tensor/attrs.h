// Attributes of an operation: a struct of its family, immutable and shared by all copies.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/attr_schema.h"

namespace samegrad {

class Attrs {
 public:
  // The attributes of an operation without any, or a struct with its defaults.
  Attrs() = default;
  template <AttrStruct T>
  Attrs(T value) : schema_(&kAttrSchema<T>), object_(std::make_shared<const T>(std::move(value))) {}

  // The struct, which must be this one or be derived from it: anything else is a bug of the engine,
  // and a TypeError that names the operation.
  template <AttrStruct T>
  const T& as() const {
    const T* found = get_if<T>();
    if (!found) [[unlikely]]
      fail_struct(kAttrSchema<T>);
    return *found;
  }
  // Null if it is another one.
  template <AttrStruct T>
  const T* get_if() const {
    if (schema_ == &kAttrSchema<T>) [[likely]]
      return static_cast<const T*>(object_.get());
    return static_cast<const T*>(find_base(kAttrSchema<T>));
  }

  const AttrSchema* schema() const { return schema_; }  // null: no attributes
  // The name of the operation, for messages; it outlives the attributes.
  void set_owner(const std::string& op) { owner_ = &op; }
  std::size_t fields() const { return schema_ ? schema_->fields.size() : 0; }
  AttrView field(std::size_t index) const { return schema_->field(object_.get(), index); }
  // With every integer in it, and in tuples, changed.
  Attrs with_integers(const std::function<std::int64_t(std::int64_t)>& change) const;

  // One struct with equal fields; numbers are told apart by their bits.
  bool operator==(const Attrs& other) const;
  std::uint64_t hash() const;

 private:
  friend class AttrDraft;
  const void* find_base(const AttrSchema& wanted) const;
  [[noreturn]] void fail_struct(const AttrSchema& wanted) const;

  const AttrSchema* schema_ = nullptr;
  std::shared_ptr<const void> object_;
  const std::string* owner_ = nullptr;
};

// Attributes that are set by name. TypeError for unknown names and wrong kinds, ValueError for an
// unknown name of an enumeration; `op_name` is the operation.
class AttrDraft {
 public:
  // Starts from the struct's defaults.
  AttrDraft(std::string_view op_name, const AttrSchema* schema);

  // A bool, int64, Number, string (names of enumerations, too), Ints or DType.
  template <class T>
  void set(std::string_view name, T value);
  // Takes the fields of the same name; false if those that are not here say anything.
  bool take(const Attrs& from);
  // TypeError if a required one is missing.
  Attrs finish();

 private:
  // kNone if there is none.
  static constexpr std::size_t kNone = std::size_t(-1);
  std::size_t find(std::string_view name) const;
  void copy_field(std::size_t index, const AttrView& from);
  void choose(std::size_t index, const ChoiceView& choice, std::string_view name);
  [[noreturn]] void fail_kind(std::size_t index, const std::string& got) const;

  std::string_view op_name_;
  const AttrSchema* schema_;
  std::shared_ptr<void> object_;
  std::vector<bool> given_;
};

std::string to_string(const Ints& values);
std::string to_string(const AttrView& value);
// "axes=(0,), keepdims=False".
std::string to_string(const Attrs& attrs);

}  // namespace samegrad
