// Included by some files, and not used.
