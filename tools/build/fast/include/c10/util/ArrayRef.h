#pragma once
#include <kfast/all.h>
