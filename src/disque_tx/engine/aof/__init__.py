"""The append only file: what a node recorded, on a disk (cluster protocol, section 14)."""
