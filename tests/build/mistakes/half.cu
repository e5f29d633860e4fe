// line 5: half_operator
#include <cuda_fp16.h>
struct V { __half a; };
__global__ void k(__half* x, V v) {
  x[0] = v * x[0];
}
