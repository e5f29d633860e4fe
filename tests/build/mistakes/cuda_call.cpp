// line 4: dim3_in_cpp
int f() {

  return cudaGetLastError();
}
