"""Files of this machine, as people choose from them."""
