// no line: static_shared_too_large
__global__ void k(float* x) {
  __shared__ float s[60000];
  s[threadIdx.x] = x[0];
  __syncthreads();
  x[1] = s[3 * threadIdx.x];
}
