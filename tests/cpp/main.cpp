#include "check.h"

CHECK_MAIN
