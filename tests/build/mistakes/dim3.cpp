// line 3: dim3_in_cpp
void f() {
  dim3 grid(4);
}
