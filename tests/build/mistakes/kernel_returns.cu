// line 2: host_device_call
__global__ int k(int* x) { return 1; }
