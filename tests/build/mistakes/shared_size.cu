// line 3: not_constant
__global__ void k(int n) {
  __shared__ float s[n];
}
