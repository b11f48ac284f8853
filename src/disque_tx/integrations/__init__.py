"""Disque for the task queues of Python: a module or package per framework.

Each is imported only by programs that use that framework, and uses only the clients of this
package, so it works with clusters of the original, too.
"""
