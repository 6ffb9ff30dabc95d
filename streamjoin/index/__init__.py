"""The chained index: immutable sorted segments, how they are laid out, and the kernels that probe them."""
