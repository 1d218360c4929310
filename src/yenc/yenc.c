#include "yenc/yenc.h"
