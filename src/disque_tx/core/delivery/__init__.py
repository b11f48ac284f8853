"""Jobs go to clients and come back: delivery, acknowledgement, retry, copies of other holders."""
