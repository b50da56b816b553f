// Source location of an operation in user code, taken for each traced operation.
#include "bind/user_location.h"

#include <unordered_map>
#include <utility>

#include "bind/convert.h"

// The layout of frames is known for this version alone; an object for each slows down tracing.
#define SAMEGRAD_READS_FRAMES (PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030c0000)
#if SAMEGRAD_READS_FRAMES
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#endif

namespace py = pybind11;

namespace samegrad {
namespace {

constexpr std::size_t kKnownFiles = 4096;   // then they are looked at anew
constexpr std::size_t kKnownLines = 65536;  // errors at older ones show no source

#if SAMEGRAD_READS_FRAMES

// A frame of Python that is running in this thread.
class PythonFrame {
 public:
  static PythonFrame innermost() { return PythonFrame(PyThreadState_Get()->cframe->current_frame); }

  explicit operator bool() const { return frame_ != nullptr; }
  PyCodeObject* code() const { return frame_->f_code; }
  PythonFrame above() const { return PythonFrame(frame_->previous); }
  int instruction() const { return _PyInterpreterFrame_LASTI(frame_) * int(sizeof(_Py_CODEUNIT)); }
  int line() const { return PyCode_Addr2Line(code(), instruction()); }

 private:
  // Frames that have not begun are none to Python.
  explicit PythonFrame(_PyInterpreterFrame* frame) : frame_(frame) {
    while (frame_ && _PyFrame_IsIncomplete(frame_)) frame_ = frame_->previous;
  }

  _PyInterpreterFrame* frame_;
};

#else

class PythonFrame {
 public:
  static PythonFrame innermost() {
    return PythonFrame(PyThreadState_GetFrame(PyThreadState_Get()));
  }

  explicit operator bool() const { return bool(frame_); }
  // The code object of the frame, which owns it.
  PyCodeObject* code() const {
    PyCodeObject* const code = PyFrame_GetCode(frame());
    Py_DECREF(code);
    return code;
  }
  PythonFrame above() const { return PythonFrame(PyFrame_GetBack(frame())); }
  int instruction() const { return PyFrame_GetLasti(frame()); }
  int line() const { return PyFrame_GetLineNumber(frame()); }

 private:
  explicit PythonFrame(PyFrameObject* frame)
      : frame_(py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(frame))) {}
  PyFrameObject* frame() const { return reinterpret_cast<PyFrameObject*>(frame_.ptr()); }

  py::object frame_;
};

#endif

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

// Returns the cached facts about a file, by the string that its code objects share. The cache is
// never destroyed, because it holds Python objects. Guarded by the GIL.
const File& known_file(PyObject* name) {
  static auto* const files = new std::unordered_map<PyObject*, File>;
  const auto found = files->find(name);
  if (found != files->end()) return found->second;
  if (files->size() > kKnownFiles) files->clear();
  auto held = py::reinterpret_borrow<py::str>(name);
  const std::string text = held;
  const std::string base = text.substr(text.rfind('/') + 1);
  return files->emplace(name, File{std::move(held), is_inside(text), base}).first->second;
}

// The place that was asked for last: many operations of a layer have one line. Guarded likewise.
struct LastPlace {
  py::object code;  // held, so that no other gets its address
  int instruction = -1;
  std::string line;
};

// Line by its text: files of other folders may have equal names. Guarded likewise.
struct KnownLine {
  py::str file;
  py::str function;
  int number;
  bool ambiguous = false;
};

std::unordered_map<std::string, KnownLine>& known_lines() {
  static auto* const lines = new std::unordered_map<std::string, KnownLine>;
  return *lines;
}

void remember(const std::string& line, const PyCodeObject* code, int number) {
  auto& lines = known_lines();
  if (lines.size() > kKnownLines) lines.clear();
  const auto file = py::reinterpret_borrow<py::str>(code->co_filename);
  const auto function = py::reinterpret_borrow<py::str>(code->co_name);
  const auto [known, fresh] = lines.try_emplace(line, KnownLine{file, function, number});
  if (!fresh && !known->second.file.equal(file)) known->second.ambiguous = true;
}

}  // namespace

std::string user_location() {
  PythonFrame frame = PythonFrame::innermost();
  if (!frame) return "?:0";  // no program runs in this thread
  const File* file = &known_file(frame.code()->co_filename);
  while (file->inside) {
    PythonFrame outer = frame.above();
    if (!outer) break;
    frame = outer;
    file = &known_file(frame.code()->co_filename);
  }
  static auto* const last = new LastPlace;
  py::object gone;  // last of all: its end may come back here
  auto* const code = reinterpret_cast<PyObject*>(frame.code());
  const int instruction = frame.instruction();
  if (last->code.ptr() != code || last->instruction != instruction) {
    const int number = frame.line();
    std::string line = file->base + ":" + std::to_string(number);
    gone = std::exchange(last->code, py::reinterpret_borrow<py::object>(code));
    remember(line, frame.code(), number);
    last->instruction = instruction;
    last->line = std::move(line);
  }
  return last->line;
}

std::string in_user_code(const std::string& line) {
  const auto known = known_lines().find(line);
  if (known == known_lines().end() || known->second.ambiguous) {
    return "\nin user code: " + line;
  }
  static constinit Imported described("samegrad._base.location", "in_user_code");
  const auto& [file, function, number, ambiguous] = known->second;
  return py::cast<std::string>(described.get()(file, number, function));
}

}  // namespace samegrad
