"""Labels from scores within class totals: transport, cells of margins, mending, shifts of probabilities."""
