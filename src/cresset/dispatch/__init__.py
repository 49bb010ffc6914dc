"""__torch_dispatch__: tensor subclasses and modes that answer for operators, below autograd and autocast.

Note [Who is asked]
The call path hands a call over (`dispatcher` in native/dispatch/call.h) when a mode is on, or when an argument's class
has __torch_dispatch__. The operator is then named as PyTorch names it (translation.py), the innermost mode is asked
first, with itself taken off, and then the classes of the arguments, subclasses before their bases (handling.py). What
a function is made of has been taken apart before: handlers see operators of torch.ops.aten, and under torch.ops.cresset
the few that aten has none for.
"""
