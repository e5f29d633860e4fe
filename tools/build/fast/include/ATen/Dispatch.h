#pragma once
#include <kfast/all.h>
#include <kfast/dispatch.h>
