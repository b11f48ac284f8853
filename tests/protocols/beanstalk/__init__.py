"""Tests of beanstalkd's protocol."""
