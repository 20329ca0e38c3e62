"""Arrays, names, clock and stop flag of a fit, progress, threads, compiled loops, files: what all rests on."""
