// line 4: syntax
__global__ void k(int* x) {
  int i = threadIdx.x
  x[i] = 1;
}
