"""HTTP: an API in JSON, health for load balancers, metrics for Prometheus."""
