// no line: unresolved_device_symbol
extern __device__ int g(int);
__global__ void k(int* x) { *x = g(1); }
