// Bindings of scopes: traces, random states and the record of _context.py that Python makes
// current.
#include <chrono>
#include <functional>
#include <random>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "bind/bind.h"
#include "runtime/watchdog.h"
#include "train/folder_lock.h"
#include "train/map_function.h"
#include "train/tape.h"

namespace py = pybind11;

namespace samegrad {
namespace {

// A `with` block: its object is made on entry, and destroyed on exit or with the Guard. Both are
// native code, so that an interrupt can arrive before or after them, never inside. If it arrives
// between the block and its exit, the frame releases the Guard, which has no other owner.
class Guard {
 public:
  using Make = std::function<std::shared_ptr<void>()>;
  Guard(Make make, py::object value) : make_(std::move(make)), value_(std::move(value)) {}

  py::object enter() {
    SG_CHECK_VALUE(!held_, "with", "one block at a time: this context is entered already.");
    held_ = make_();
    return value_;
  }
  void exit() { held_.reset(); }

 private:
  Make make_;
  py::object value_;
  std::shared_ptr<void> held_;
};

// A release may run at the end of a thread, after its Python state, or of the process, after
// Python.
std::shared_ptr<void> shared(const py::object& object) {
  return {py::object(object).release().ptr(), [](void* p) {
            if (!Py_IsInitialized()) return;
            const py::gil_scoped_acquire gil;
            Py_DECREF(static_cast<PyObject*>(p));
          }};
}

PyObject* default_context = nullptr;

PyObject* current_context(PyObject* /*module*/ = nullptr, PyObject* /*none*/ = nullptr) {
  auto* own = static_cast<PyObject*>(current().context.get());
  return Py_NewRef(own ? own : default_context);
}

// The current scope, with some fields of the record changed.
std::shared_ptr<Scope> scope_with(Current next, const py::dict& changes) {
  if (!changes.empty()) {
    const auto record = py::reinterpret_steal<py::object>(current_context());
    next.context = shared(record.attr("_replace")(**changes));
  }
  return std::make_shared<Scope>(std::move(next));
}

// All operations that a trace records during this object's lifetime are one node to every tape.
class OneCall {
 public:
  explicit OneCall(std::shared_ptr<Trace> trace)
      : trace_(std::move(trace)), before_(trace_->open_calls()) {
    trace_->begin_call();
  }
  ~OneCall() {
    while (!trace_->finished() && trace_->open_calls() > before_) trace_->end_call();
  }
  OneCall(const OneCall&) = delete;
  OneCall& operator=(const OneCall&) = delete;

 private:
  std::shared_ptr<Trace> trace_;
  std::size_t before_;
};

class TapeScope {
 public:
  explicit TapeScope(py::object tape) : tape_(std::move(tape)) { py::cast<Tape&>(tape_).start(); }
  ~TapeScope() { py::cast<Tape&>(tape_).stop(); }
  TapeScope(const TapeScope&) = delete;
  TapeScope& operator=(const TapeScope&) = delete;

 private:
  py::object tape_;
};

struct Paused {
  explicit Paused(py::object tape) : owner(std::move(tape)), pause(py::cast<Tape&>(owner)) {}
  py::object owner;
  Tape::Pause pause;
};

// A lock of Python's.
class Holding {
 public:
  explicit Holding(py::object lock) : lock_(std::move(lock)) { lock_.attr("acquire")(); }
  ~Holding() {
    const py::error_scope kept;
    try {
      lock_.attr("release")();
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("samegrad");
    }
  }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

 private:
  py::object lock_;
};

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail_as_os_error(int error, const py::object& path) {
  errno = error;
  PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, py::str(path).ptr());
  throw py::error_already_set();
}

[[noreturn]] void fail_as_held(const py::object& folder, double timeout) {
  const auto message =
      py::str(
          "[checkpoint] writers of {} must let go of its lock within {:g} s: another thread or "
          "process still holds it. Stop that one, or take another folder.")
          .format(folder, timeout);
  PyErr_SetObject(PyExc_TimeoutError, message.ptr());
  throw py::error_already_set();
}

// The name as the system knows it.
std::string system_name(const py::object& path) {
  PyObject* name = nullptr;
  if (!PyUnicode_FSConverter(path.ptr(), static_cast<void*>(&name))) throw py::error_already_set();
  return py::reinterpret_steal<py::bytes>(name);
}

// Waits where others hold it; signals are served meanwhile.
void wait_for(FolderLock& lock, LockUse use, const py::object& folder, double timeout) {
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(timeout));
  std::minstd_rand random(unsigned(Clock::now().time_since_epoch().count()));
  while (!lock.take(use)) {
    if (Clock::now() > end) fail_as_held(folder, timeout);
    {
      const py::gil_scoped_release release;
      std::this_thread::sleep_for(std::chrono::microseconds(1000 + random() % 4000));
    }
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

// Nothing where the folder may not be listed: its files can be read without that right, but not
// written, which a lock is needed for.
std::shared_ptr<FolderLock> locked_folder(const py::object& folder, bool shared, double timeout) {
  try {
    auto lock = std::make_shared<FolderLock>(system_name(folder));
    wait_for(*lock, shared ? LockUse::kRead : LockUse::kWrite, folder, timeout);
    return lock;
  } catch (const std::system_error& error) {
    if (shared && error.code() == std::errc::permission_denied) return nullptr;
    fail_as_os_error(error.code().value(), folder);
  }
}

Guard guard_of(Guard::Make make, py::object value = py::none()) {
  return {std::move(make), std::move(value)};
}

void register_guard(py::module_& m) {
  py::class_<Guard>(m, "Guard")
      .def("__enter__", &Guard::enter)
      .def("__exit__", [](Guard& guard, const py::args& /*error*/) { guard.exit(); });
}

void register_contexts(py::module_& m) {
  m.def("set_default_context", [](const py::object& record) {
    default_context = py::object(record).release().ptr();  // kept for ever
  });
  static PyMethodDef read = {"current_context", current_context, METH_NOARGS,
                             "current_context() -> object"};
  m.add_object("current_context", PyCFunction_New(&read, nullptr));
  m.def(
      "changed_context",
      [](const py::dict& changes, const py::object& value) {
        return guard_of([changes] { return scope_with(current(), changes); }, value);
      },
      py::arg("changes"), py::arg("value") = py::none());
  m.def("no_trace",
        [] { return guard_of([] { return std::make_shared<Scope>(with_trace(nullptr)); }); });
  m.def(
      "data_function",
      [](std::uint64_t seed, std::uint64_t position) {
        return guard_of([seed, position] {
          return std::make_shared<Scope>(for_data_function(seed, position));
        });
      },
      py::arg("seed"), py::arg("position"));
  m.def("one_call", [] {
    return guard_of([]() -> std::shared_ptr<void> {
      const std::shared_ptr<Trace> trace = current_trace();
      return trace ? std::make_shared<OneCall>(trace) : nullptr;
    });
  });
}

}  // namespace

void register_scopes(py::module_& m) {
  register_guard(m);
  register_contexts(m);
  m.def(
      "tracing_into",
      [](const std::shared_ptr<Trace>& trace, const py::dict& changes) {
        return guard_of([trace, changes] { return scope_with(with_trace(trace), changes); });
      },
      py::arg("trace"), py::arg("changes") = py::dict());
  m.def(
      "holding",
      [](const py::object& lock) {
        return guard_of([lock] { return std::make_shared<Holding>(lock); });
      },
      py::arg("lock"));
  m.def(
      "locked_folder",
      [](const py::object& folder, bool shared, double timeout) {
        return guard_of(
            [folder, shared, timeout] { return locked_folder(folder, shared, timeout); });
      },
      py::arg("folder"), py::arg("shared"), py::arg("timeout"));
  m.def(
      "deadline",
      [](double seconds, const std::string& why) {
        const std::chrono::milliseconds patience(std::int64_t(seconds * 1000));
        return guard_of([patience, why] { return std::make_shared<Watchdog>(patience, why); });
      },
      py::arg("seconds"), py::arg("why"),
      "While it is entered the process lives for so many seconds: then it says why and exits.");
  m.def(
      "recording",
      [](const py::object& tape) {
        return guard_of([tape] { return std::make_shared<TapeScope>(tape); }, tape);
      },
      py::arg("tape"));
  m.def(
      "paused",
      [](const py::object& tape) {
        return guard_of([tape] { return std::make_shared<Paused>(tape); });
      },
      py::arg("tape"));
}

}  // namespace samegrad
