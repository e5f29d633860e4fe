// line 2: missing_header
#include "my_kernels.cuh"
int f() { return 1; }
