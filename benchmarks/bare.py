"""The least that Django does for a call with a token: its own middleware, one look-up with the ORM, a short answer.

The settings, the addresses and the applications of a project that ``startproject`` might have made, on Brain's
database. benchmarks.serving puts Brain's server beside it.
"""

from brain.settings import *  # noqa: F403

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "benchmarks.bare_view"
