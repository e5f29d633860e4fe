// line 5: syntax
int f() {
  if (true) {
  return 1;
}

