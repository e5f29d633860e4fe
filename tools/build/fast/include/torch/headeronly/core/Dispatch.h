#pragma once
#include <kfast/dispatch_base.h>
