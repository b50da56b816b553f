# oneTBB and Eigen from the wheels that pyproject.toml declares, else those of conda or the system:
# oneTBB has wheels for x86-64 only.

execute_process(
  COMMAND ${Python_EXECUTABLE} -c
          "import sysconfig; print(sysconfig.get_path('data'))"
  OUTPUT_VARIABLE python_prefix
  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
# An isolated build environment is a folder on sys.path, not a prefix.
execute_process(
  COMMAND ${Python_EXECUTABLE} -c "import sys; print(';'.join(sys.path))"
  OUTPUT_VARIABLE python_sys_path
  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

set(tbb_hints ${python_prefix})
foreach(folder IN LISTS python_sys_path)
  # <prefix>/lib/python3.x/site-packages, or <prefix> itself for a --target folder
  list(APPEND tbb_hints ${folder}/../../.. ${folder})
endforeach()

find_path(SAMEGRAD_TBB_INCLUDE_DIR oneapi/tbb/parallel_for.h HINTS ${tbb_hints}
          PATH_SUFFIXES include)
find_library(SAMEGRAD_TBB_LIBRARY NAMES libtbb.so.12 tbb HINTS ${tbb_hints} PATH_SUFFIXES lib lib64)
if(NOT SAMEGRAD_TBB_INCLUDE_DIR OR NOT SAMEGRAD_TBB_LIBRARY)
  message(FATAL_ERROR "oneTBB was not found for ${CMAKE_SYSTEM_PROCESSOR}. Install it and repeat the "
                      "command: pip install tbb-devel (x86-64 only), sudo apt-get install libtbb-dev "
                      "(Debian, Ubuntu), sudo dnf install tbb-devel (Fedora), conda install -c "
                      "conda-forge tbb-devel. Or set the CMake options SAMEGRAD_TBB_INCLUDE_DIR and "
                      "SAMEGRAD_TBB_LIBRARY to the folder of its headers and to its library.")
endif()
get_filename_component(SAMEGRAD_TBB_FILE "${SAMEGRAD_TBB_LIBRARY}" REALPATH)
add_library(samegrad_tbb SHARED IMPORTED)
set_target_properties(
  samegrad_tbb PROPERTIES IMPORTED_LOCATION ${SAMEGRAD_TBB_LIBRARY}
                          INTERFACE_INCLUDE_DIRECTORIES ${SAMEGRAD_TBB_INCLUDE_DIR})

# Eigen decomposes matrices (cpp/ops/matrices_*.cpp), and is the reference of the kernels' tests. It
# is headers only, so that a cross build takes this machine's.
set(eigen_hints)
foreach(folder IN LISTS python_sys_path)
  list(APPEND eigen_hints ${folder}/cmeel.prefix)
endforeach()
find_path(SAMEGRAD_EIGEN_INCLUDE_DIR Eigen/Core HINTS ${eigen_hints}
          PATH_SUFFIXES include/eigen3 eigen3 NO_CMAKE_FIND_ROOT_PATH)
if(NOT SAMEGRAD_EIGEN_INCLUDE_DIR)
  message(FATAL_ERROR "Eigen was not found: install it with `pip install cmeel-eigen==3.4.1` (or the "
                      "package libeigen3-dev), or pass -DSAMEGRAD_EIGEN_INCLUDE_DIR=<folder>.")
endif()

# JPEG and PNG files are decoded by these where they are installed, else by Pillow, which gives the
# same pixels in more time and under Python's lock.
set(SAMEGRAD_IMAGE_LIBRARIES)
foreach(library IN ITEMS JPEG PNG)
  find_package(${library} QUIET)
  if(${library}_FOUND)
    list(APPEND SAMEGRAD_IMAGE_LIBRARIES ${library})
  else()
    message(STATUS "lib${library} was not found: Pillow decodes such files, more slowly. Debian has "
                   "it in the packages libjpeg-dev and libpng-dev.")
  endif()
endforeach()
