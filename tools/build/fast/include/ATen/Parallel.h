#pragma once
#include <kfast/all.h>
#include <kfast/parallel.h>
