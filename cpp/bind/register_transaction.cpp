// `with all_or_nothing(...):` what makes or changes several things makes all of them, or none.
#include <pybind11/stl.h>

#include <optional>

#include "base/error.h"
#include "bind/bind.h"
#include "bind/state.h"
#include "train/random_state.h"
#include "train/variable.h"

namespace py = pybind11;

namespace samegrad {
namespace {

// The number of initial values that this thread has drawn, and that number at its last commit.
thread_local std::uint64_t drawn = 0, kept = 0;

// The number of the next variable that is drawn, which belongs to its first value: what fails
// gives its numbers back, so that trying again draws the same. What blocks inside have completed
// stays, and so does everything where other threads have drawn meanwhile.
class VariableOrdinal {
 public:
  VariableOrdinal()
      : state_(&random_state()), created_(state_->created), before_(drawn), outer_(kept) {
    kept = drawn;
  }
  void keep() { kept = drawn; }
  void give_back() {
    std::uint64_t now = created_ + (drawn - before_);
    if (state_ == &random_state())
      state_->created.compare_exchange_strong(now, now - (drawn - kept));
    drawn = kept;
    if (kept == before_) kept = outer_;
  }

 private:
  RandomState* state_;
  std::uint64_t created_, before_, outer_;
};

// The attributes of an object, of which containers are replaced, never changed.
class Attributes {
 public:
  explicit Attributes(const py::object& owner) : now_(owner.attr("__dict__")) {
    before_ = py::reinterpret_steal<py::dict>(PyDict_Copy(now_.ptr()));
    if (!before_) throw py::error_already_set();
  }
  void restore() {
    const py::error_scope kept_error;
    if (PyDict_Update(now_.ptr(), before_.ptr()) != 0) PyErr_Clear();
    const auto names = py::reinterpret_steal<py::object>(PyDict_Keys(now_.ptr()));
    for (Py_ssize_t i = 0; names && i < PyList_GET_SIZE(names.ptr()); ++i) {
      PyObject* const name = PyList_GET_ITEM(names.ptr(), i);
      if (!PyDict_Contains(before_.ptr(), name)) PyDict_DelItem(now_.ptr(), name);
    }
    PyErr_Clear();
  }

 private:
  py::dict now_, before_;
};

// The memory of variables is shared: a concurrent writer gives them new arrays.
class KeptValues {
 public:
  explicit KeptValues(std::vector<std::shared_ptr<Variable>> variables)
      : variables_(std::move(variables)) {
    with_state(StateLock::Use::kRead, [&] {
      for (const auto& variable : variables_) arrays_.push_back(variable->components());
    });
  }
  void restore() {
    with_state(StateLock::Use::kWrite, [&] {
      for (std::size_t i = 0; i < variables_.size(); ++i) {
        variables_[i]->components().swap(arrays_[i]);
      }
    });
  }

 private:
  std::vector<std::shared_ptr<Variable>> variables_;
  std::vector<PerReplica<Array>> arrays_;
};

// Without an exit (an interrupt came in between) nothing has happened either.
class Transaction {
 public:
  Transaction(py::object owner, std::vector<std::shared_ptr<Variable>> variables)
      : owner_(std::move(owner)), variables_(std::move(variables)) {}
  ~Transaction() { take_back(); }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void enter() {
    SG_CHECK_VALUE(!draws_, "all_or_nothing", "one block at a time: it is entered already.");
    if (!owner_.is_none()) attributes_.emplace(owner_);
    values_.emplace(variables_);
    draws_.emplace();
  }
  void exit(bool failed) {
    if (failed) return take_back();
    if (draws_) draws_->keep();
    forget();
  }

 private:
  void take_back() {
    if (!draws_) return;
    draws_->give_back();
    try {
      values_->restore();
    } catch (const Error&) {  // a forked child, whose variables are lost anyway
    }
    if (attributes_) attributes_->restore();
    forget();
  }
  void forget() {
    draws_.reset();
    values_.reset();
    attributes_.reset();
  }

  py::object owner_;
  std::vector<std::shared_ptr<Variable>> variables_;
  std::optional<Attributes> attributes_;
  std::optional<KeptValues> values_;
  std::optional<VariableOrdinal> draws_;
};

}  // namespace

void register_transaction(py::module_& m) {
  py::class_<Transaction>(m, "AllOrNothing")
      .def("__enter__", &Transaction::enter)
      .def("__exit__", [](Transaction& self, const py::object& kind, const py::object& /*error*/,
                          const py::object& /*traceback*/) { self.exit(!kind.is_none()); });
  m.def(
      "all_or_nothing",
      [](py::object owner, std::vector<std::shared_ptr<Variable>> variables) {
        return std::make_unique<Transaction>(std::move(owner), std::move(variables));
      },
      py::arg("owner") = py::none(),
      py::arg("variables") = std::vector<std::shared_ptr<Variable>>());
  m.def("take_created", [] {
    const std::uint64_t number = random_state().created++;
    ++drawn;
    return number;
  });
}

}  // namespace samegrad
