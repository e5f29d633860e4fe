// line 4: syntax
int f() {
  int a = 1
  return a;
}
