#pragma once
#include <kfast/all.h>
#include <kfast/accumulate.h>
