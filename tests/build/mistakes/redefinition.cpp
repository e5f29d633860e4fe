// line 3: duplicate_symbol
int f() { return 1; }
int f() { return 2; }
