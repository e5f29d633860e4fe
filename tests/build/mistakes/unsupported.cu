// no line: unsupported_instruction
__global__ void k(int* x) {
  asm volatile("tcgen05.fence::before_thread_sync;");
}
