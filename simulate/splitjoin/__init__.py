"""SplitJoin (USENIX ATC 2016): storing and processing are split, and one flow from the top down serves all cores."""
