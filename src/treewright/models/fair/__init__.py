"""Fair optimal trees (Aghaei, Azizi and Vayanos 2019)."""
