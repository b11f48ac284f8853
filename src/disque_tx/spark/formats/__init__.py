"""The formats, under the names by which Spark finds them."""
