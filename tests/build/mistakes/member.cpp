// line 3: no_member
struct T { int size(); };
int f(T t) { return t.numel(); }
