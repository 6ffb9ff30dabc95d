"""Small files that people send to the platform, which keeps them in its data folder for streams and relations."""
