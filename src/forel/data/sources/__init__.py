"""From paths, file objects and standard input to chunks of bytes, and caches of parsed rows."""
