"""HTTP: an API in JSON, a console, health for load balancers, metrics for Prometheus."""
