// line 4: host_device_call
__global__ void k(int* x) {}
void f(int* x) {
  k(x);
}
