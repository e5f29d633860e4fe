// line 3: undeclared_name
__global__ void k(float* x) {
  x[tid] = 1;
}
