#pragma once
#include <kfast/irange.h>
