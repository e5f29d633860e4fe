// line 4: no_operator
struct T {};
T f(T a, T b) {
  return a * b;
}
