#pragma once
#include <kfast/all.h>
#include <kfast/cuda.h>
