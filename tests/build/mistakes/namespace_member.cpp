// line 3: no_member
namespace torch { int one(); }
int f() { return torch::two(); }
