"""The tools: one file each, which only translates arguments into one service call and its answer into plain values."""
