// StableList: elements keep their addresses while the list grows.
#pragma once

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace samegrad {

// Chunks of a power of two of elements: an index costs two loads, and std::deque's a division by
// the size of an element.
template <class T>
class StableList {
  static constexpr std::size_t kChunk = 16;

  template <class Of, class List>
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = Of*;
    using reference = Of&;

    Iterator() = default;
    Iterator(List& list, std::size_t index) : list_(&list), index_(index) {}
    Of& operator*() const { return (*list_)[index_]; }
    Of* operator->() const { return &**this; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    Iterator operator++(int) { return std::exchange(*this, Iterator(*list_, index_ + 1)); }
    bool operator==(const Iterator&) const = default;

   private:
    List* list_ = nullptr;
    std::size_t index_ = 0;
  };

 public:
  using value_type = T;
  using iterator = Iterator<T, StableList>;
  using const_iterator = Iterator<const T, const StableList>;

  StableList() = default;
  StableList(const StableList& other) {
    for (const T& value : other) push_back(value);
  }
  StableList(StableList&&) = default;
  StableList& operator=(const StableList& other) { return *this = StableList(other); }
  StableList& operator=(StableList&&) = default;
  ~StableList() = default;

  T& operator[](std::size_t i) { return chunks_[i / kChunk][i % kChunk]; }
  const T& operator[](std::size_t i) const { return chunks_[i / kChunk][i % kChunk]; }
  T& back() { return chunks_.back().back(); }
  const T& back() const { return chunks_.back().back(); }

  std::size_t size() const {
    return chunks_.empty() ? 0 : (chunks_.size() - 1) * kChunk + chunks_.back().size();
  }
  bool empty() const { return chunks_.empty(); }

  void push_back(T value) {
    if (chunks_.empty() || chunks_.back().size() == kChunk) {
      std::vector<T> chunk;
      chunk.reserve(kChunk);
      chunks_.push_back(std::move(chunk));
    }
    chunks_.back().push_back(std::move(value));
  }
  void pop_back() {
    chunks_.back().pop_back();
    if (chunks_.back().empty()) chunks_.pop_back();
  }
  void resize(std::size_t size) {
    while (this->size() > size) pop_back();
    while (this->size() < size) push_back(T());
  }

  iterator begin() { return {*this, 0}; }
  iterator end() { return {*this, size()}; }
  const_iterator begin() const { return {*this, 0}; }
  const_iterator end() const { return {*this, size()}; }

 private:
  std::vector<std::vector<T>> chunks_;
};

}  // namespace samegrad
