// line 3: wrong_arguments
int g(int* a);
int f() { return g(1.5f); }
