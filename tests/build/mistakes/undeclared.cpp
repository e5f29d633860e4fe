// line 3: undeclared_name
int f(int n) {
  return n + count;
}
