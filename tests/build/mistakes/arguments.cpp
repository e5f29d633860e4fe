// line 3: wrong_arguments
int g(int a, int b);
int f() { return g(1); }
