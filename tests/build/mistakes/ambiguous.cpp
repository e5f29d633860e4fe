// line 3: ambiguous
int g(float); int g(long);
int f() { return g(1); }
