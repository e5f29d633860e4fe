// line 3: no_member
__global__ void k(float4* x) {
  x[0].q = 1;
}
