// line 2: missing_header
#include <cutlass/cutlass.h>
__global__ void k() {}
