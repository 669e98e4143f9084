"""A shop on django-oscar: its settings, its tables, its customers.

    shop.py setup             makes the tables, a product, and customers with a voucher each
    shop.py serve CUSTOMERS   so many customers order, one after another

The database is the one that PGHOST, PGPORT, PGUSER and PGDATABASE name.
"""
import logging
import os
import sys

import django
from django.conf import settings
from oscar.defaults import *  # noqa: F403: Oscar's own settings have to be Django's

CUSTOMERS = 40

SETTINGS = {name: value for name, value in globals().items() if name.startswith("OSCAR_")}
APPS = """django.contrib.admin django.contrib.auth django.contrib.contenttypes django.contrib.sessions
django.contrib.messages django.contrib.staticfiles django.contrib.sites django.contrib.flatpages
oscar.config.Shop oscar.apps.analytics.apps.AnalyticsConfig oscar.apps.checkout.apps.CheckoutConfig
oscar.apps.address.apps.AddressConfig oscar.apps.shipping.apps.ShippingConfig
oscar.apps.catalogue.apps.CatalogueConfig oscar.apps.catalogue.reviews.apps.CatalogueReviewsConfig
oscar.apps.communication.apps.CommunicationConfig oscar.apps.partner.apps.PartnerConfig
oscar.apps.basket.apps.BasketConfig oscar.apps.payment.apps.PaymentConfig oscar.apps.offer.apps.OfferConfig
oscar.apps.order.apps.OrderConfig oscar.apps.customer.apps.CustomerConfig oscar.apps.search.apps.SearchConfig
oscar.apps.voucher.apps.VoucherConfig oscar.apps.wishlists.apps.WishlistsConfig
oscar.apps.dashboard.apps.DashboardConfig oscar.apps.dashboard.reports.apps.ReportsDashboardConfig
oscar.apps.dashboard.users.apps.UsersDashboardConfig oscar.apps.dashboard.orders.apps.OrdersDashboardConfig
oscar.apps.dashboard.catalogue.apps.CatalogueDashboardConfig oscar.apps.dashboard.offers.apps.OffersDashboardConfig
oscar.apps.dashboard.partners.apps.PartnersDashboardConfig oscar.apps.dashboard.pages.apps.PagesDashboardConfig
oscar.apps.dashboard.ranges.apps.RangesDashboardConfig oscar.apps.dashboard.reviews.apps.ReviewsDashboardConfig
oscar.apps.dashboard.vouchers.apps.VouchersDashboardConfig
oscar.apps.dashboard.communications.apps.CommunicationsDashboardConfig
oscar.apps.dashboard.shipping.apps.ShippingDashboardConfig
widget_tweaks haystack treebeard sorl.thumbnail django_tables2 phonenumber_field""".split()
MIDDLEWARE = """django.contrib.sessions.middleware.SessionMiddleware django.middleware.common.CommonMiddleware
django.contrib.auth.middleware.AuthenticationMiddleware django.contrib.messages.middleware.MessageMiddleware
oscar.apps.basket.middleware.BasketMiddleware""".split()
PROCESSORS = """django.template.context_processors.request django.contrib.auth.context_processors.auth
django.template.context_processors.debug django.contrib.messages.context_processors.messages
oscar.apps.search.context_processors.search_form oscar.apps.checkout.context_processors.checkout
oscar.apps.communication.notifications.context_processors.notifications
oscar.core.context_processors.metadata""".split()


def urls():
    from django.apps import apps
    from django.urls import include, path

    return [
        path("i18n/", include("django.conf.urls.i18n")),
        path("", include(apps.get_app_config("oscar").urls[0])),
    ]


def configure():
    settings.configure(
        **SETTINGS,
        DEBUG=False,
        SECRET_KEY="of a shop that sells nothing",
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF="urls",
        SITE_ID=1,
        STATIC_URL="/static/",
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        INSTALLED_APPS=APPS,
        MIDDLEWARE=MIDDLEWARE,
        TEMPLATES=[{
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {"context_processors": PROCESSORS},
        }],
        AUTHENTICATION_BACKENDS=["django.contrib.auth.backends.ModelBackend"],
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        EMAIL_BACKEND="django.core.mail.backends.dummy.EmailBackend",
        HAYSTACK_CONNECTIONS={"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}},
        LOGGING_CONFIG=None,
        # As Oscar's manual has it: each request is a transaction.
        DATABASES={"default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": os.environ["PGDATABASE"],
            "USER": os.environ.get("PGUSER", ""),
            "HOST": os.environ["PGHOST"],
            "PORT": os.environ["PGPORT"],
            "ATOMIC_REQUESTS": True,
        }},
    )
    # Products have no pictures.
    logging.disable(logging.CRITICAL)
    module = type(sys)("urls")
    sys.modules["urls"] = module
    django.setup()
    module.urlpatterns = urls()


def setup():
    from django.contrib.auth import get_user_model
    from django.contrib.sites.models import Site
    from django.core.management import call_command
    from django.utils import timezone
    from oscar.core.loading import get_model
    from oscar.test.factories import create_product

    call_command("migrate", verbosity=0)
    Site.objects.get_or_create(pk=1, defaults={"domain": "shop", "name": "shop"})
    get_model("address", "Country").objects.create(
        iso_3166_1_a2="DE", name="Germany", printable_name="Germany", is_shipping_country=True)
    product = create_product(price=10, num_in_stock=100_000)
    ranges = get_model("offer", "Range").objects.create(name="everything", includes_all_products=True)
    offers = get_model("offer", "ConditionalOffer")
    offer = offers.objects.create(
        name="a discount",
        offer_type=offers.VOUCHER,
        condition=get_model("offer", "Condition").objects.create(range=ranges, type="Count", value=1),
        benefit=get_model("offer", "Benefit").objects.create(range=ranges, type="Percentage", value=10),
    )
    now = timezone.now()
    for number in range(CUSTOMERS):
        # As the vouchers of a set: each customer has a code, and all codes are of one offer.
        voucher = get_model("voucher", "Voucher").objects.create(
            name=f"sale {number}", code=f"SALE{number}", usage="Multi-use",
            start_datetime=now - timezone.timedelta(days=1), end_datetime=now + timezone.timedelta(days=365))
        voucher.offers.add(offer)
        get_user_model().objects.create_user(f"customer{number}", f"c{number}@shop.test", "secret")
    print(f"product {product.pk}, {CUSTOMERS} customers")


def order(number):
    """A customer signs in, puts the product into the basket, and orders it with the voucher."""
    from django.contrib.auth import get_user_model
    from django.test import Client
    from oscar.core.loading import get_model

    client = Client(raise_request_exception=True)
    client.force_login(get_user_model().objects.get(username=f"customer{number % CUSTOMERS}"))
    product = get_model("catalogue", "Product").objects.get()

    def request(path, data=None):
        answer = client.get(path) if data is None else client.post(path, data)
        if answer.status_code not in (200, 302):
            sys.exit(f"{path}: {answer.status_code}")
        return answer

    request(f"/basket/add/{product.pk}/", {"quantity": 1})
    request("/basket/vouchers/add/", {"code": f"SALE{number % CUSTOMERS}"})
    request("/checkout/shipping-address/", {
        "first_name": "A", "last_name": "Customer", "line1": "A street 1", "line4": "A town", "postcode": "10115",
        "country": "DE"})
    for page in ("shipping-method", "payment-method", "payment-details"):
        request(f"/checkout/{page}/")
    placed = request("/checkout/preview/", {"action": "place_order"})
    if not placed.headers.get("Location", "").endswith("/thank-you/"):
        sys.exit(f"no order was placed: {placed.headers}")
    request("/checkout/thank-you/")


def main():
    configure()
    if sys.argv[1:] == ["setup"]:
        setup()
    elif len(sys.argv) == 3 and sys.argv[1] == "serve":
        for number in range(int(sys.argv[2])):
            order(number)
        print(f"{sys.argv[2]} orders")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
