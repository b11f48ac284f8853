"""What all routes need: values and bodies."""
