"""beanstalkd's protocol."""
