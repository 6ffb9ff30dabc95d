"""All of the command line: commands of join files, and in `platform/` those that talk to a platform."""
