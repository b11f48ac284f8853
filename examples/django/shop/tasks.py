"""The tasks of the shop."""

try:
    from django.tasks import task
except ImportError:  # before Django 6
    from django_tasks import task


@task
def price(item, count):
    """What so many cost, in cents."""
    return {"tea": 450, "cup": 1200}[item] * count


@task(priority=10)
async def remind(customer):
    """Sent some time after the order: the delay waits in the node."""
    return f"{customer}: please pay"
