// line 4: not_constant
int f(int n) {
  static int a[2];
  constexpr int m = n;
  return a[m];
}
