#pragma once
#include <kfast/macros.h>
