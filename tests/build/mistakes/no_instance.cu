// line 4: wrong_arguments
template <typename T> __device__ T g(T a, T b) { return a; }
__global__ void k(int* x) {
  *x = g(1, 2.0f);
}
