// line 4: wrong_arguments
__global__ void k(int* x, int n) {}
void f(float* x) {
  k<<<1, 1>>>(x, 3);
}
