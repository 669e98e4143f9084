"""A shop in Django: one file, settings included.

    PORT=8000 python shop.py

/order reads the stock and writes it back. /order-locked locks the row first. /order-atomic counts in one statement.
"""
import os

from django.conf import settings

settings.configure(
    ALLOWED_HOSTS=["*"],
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"]}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    ROOT_URLCONF=__name__,
    SECRET_KEY="of a shop that sells nothing",
    USE_TZ=True,
)

import django  # noqa: E402: settings come first

django.setup()

from django.db import models, transaction  # noqa: E402
from django.http import HttpResponse, JsonResponse  # noqa: E402
from django.urls import path  # noqa: E402


class Item(models.Model):
    stock = models.IntegerField()

    class Meta:
        app_label, db_table = "shop", "item"


class Order(models.Model):
    item = models.ForeignKey(Item, models.CASCADE, db_column="item")
    placed = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label, db_table = "shop", "orders"


def take(items):
    item = items.get(pk=1)
    if item.stock < 1:
        return JsonResponse({"error": "sold out"}, status=409)
    item.stock -= 1
    item.save()
    order = Order.objects.create(item=item)
    return JsonResponse({"order": order.pk, "left": item.stock})


@transaction.atomic
def order(request):
    return take(Item.objects)


@transaction.atomic
def order_locked(request):
    return take(Item.objects.select_for_update())


@transaction.atomic
def order_atomic(request):
    if not Item.objects.filter(pk=1, stock__gt=0).update(stock=models.F("stock") - 1):
        return JsonResponse({"error": "sold out"}, status=409)
    return JsonResponse({"order": Order.objects.create(item_id=1).pk})


urlpatterns = [
    path("", lambda request: HttpResponse("a shop\n")),
    path("order", order),
    path("order-locked", order_locked),
    path("order-atomic", order_atomic),
]

if __name__ == "__main__":
    from django.core.management import execute_from_command_line

    execute_from_command_line(["shop.py", "runserver", "--noreload", os.environ["PORT"]])
