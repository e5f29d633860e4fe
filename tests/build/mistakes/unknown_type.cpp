// line 2: undeclared_name
Tensor f(Tensor x) { return x; }
