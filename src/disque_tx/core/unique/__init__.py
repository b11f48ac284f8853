"""ADDJOB UNIQUE: keys are claimed, checked, freed, and conflicts decided."""
