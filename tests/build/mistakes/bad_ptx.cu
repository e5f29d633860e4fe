// no line: bad_ptx
__global__ void k(int* x) {
  int r; asm("add.s33 %0, %1, %1;" : "=r"(r) : "r"(*x)); *x = r;
}
