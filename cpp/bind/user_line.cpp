// Where in the user's program an operation is written: asked for each operation that is traced.
#include "bind/user_line.h"

#include <unordered_map>

#include "bind/convert.h"

namespace py = pybind11;

namespace samegrad {
namespace {

constexpr std::size_t kKnownFiles = 4096;  // then they are looked at anew

py::object frame_above(const py::object& frame) {
  auto* const back = PyFrame_GetBack(reinterpret_cast<PyFrameObject*>(frame.ptr()));
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(back));
}

py::str file_of(const py::object& frame) {
  auto* const code = PyFrame_GetCode(reinterpret_cast<PyFrameObject*>(frame.ptr()));
  const auto held = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(code));
  return py::reinterpret_borrow<py::str>(code->co_filename);
}

bool is_inside(const std::string& file) {
  static constinit Imported packages("samegrad._base.location", "PACKAGES");
  for (const py::handle folder : packages.get()) {
    if (file.starts_with(py::cast<std::string>(folder))) return true;
  }
  return false;
}

struct File {
  py::str name;  // held, so that no other string gets its address
  bool inside;
  std::string base;
};

// What is known of a file by the string that its code objects share. Never destroyed: it holds
// objects of Python. Guarded by Python's lock.
const File& known_file(const py::str& name) {
  static auto* const files = new std::unordered_map<PyObject*, File>;
  const auto found = files->find(name.ptr());
  if (found != files->end()) return found->second;
  if (files->size() > kKnownFiles) files->clear();
  const std::string text = name;
  const std::string base = text.substr(text.rfind('/') + 1);
  return files->emplace(name.ptr(), File{name, is_inside(text), base}).first->second;
}

}  // namespace

std::string user_line() {
  auto* const innermost = PyThreadState_GetFrame(PyThreadState_Get());
  auto frame = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(innermost));
  if (!frame) return "?:0";  // no program runs in this thread
  const File* file = &known_file(file_of(frame));
  while (file->inside) {
    py::object outer = frame_above(frame);
    if (!outer) break;
    frame = std::move(outer);
    file = &known_file(file_of(frame));
  }
  const int line = PyFrame_GetLineNumber(reinterpret_cast<PyFrameObject*>(frame.ptr()));
  return file->base + ":" + std::to_string(line);
}

}  // namespace samegrad
