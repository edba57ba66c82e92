"""Every setting of an installation. docs/reference/settings.md lists the ones that come from the environment.

Numbers that a client can see are not settings: they stand in core/limits.py.
"""

import os
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from csp.constants import NONE, SELF
from django.contrib import admin
from django.core.exceptions import ImproperlyConfigured

from brain.environment import Environment
from core import limits, log
from core.safe_open import make_private_directory, secret_file

BASE_DIR = Path(__file__).resolve().parent.parent
env = Environment(os.environ)

# Where everything that must survive lives: one local disk.
DATA_DIR = env.directory("BRAIN_DATA_DIR", BASE_DIR / "var")
try:
    make_private_directory(DATA_DIR)
    # Signs sessions; may be replaced.
    SECRET_KEY = env.secret("BRAIN_SECRET_KEY") or secret_file(DATA_DIR / "secret_key")
    # Keys versions and cursors; belongs to the data.
    DATA_KEY = secret_file(DATA_DIR / "data_key").encode("ascii")
except OSError as error:
    raise ImproperlyConfigured(
        f"BRAIN_DATA_DIR: {DATA_DIR} cannot be used: {error.strerror or error}."
    ) from error

# How long, and how much of, old versions are kept; None is a quarter of the volume. kb.store.retention takes away.
HISTORY_DAYS = env.number("BRAIN_HISTORY_DAYS", 365, least=1, most=36_500)
HISTORY_BYTES = env.number("BRAIN_HISTORY_BYTES", 0, least=0, most=2**60) or None

# How much one connection may do; a person's browser counts as one. access.throttle refuses the rest.
CALLS_PER_MINUTE = env.number("BRAIN_CALLS_PER_MINUTE", 6_000, least=1, most=10**9)
BYTES_WRITTEN_PER_HOUR = env.number("BRAIN_BYTES_WRITTEN_PER_HOUR", 2**30, least=1, most=2**60)

# The server, and the address that people and agents know it by.
HOST = env.text("BRAIN_HOST", "127.0.0.1")
PORT = env.number("BRAIN_PORT", 8000, least=1, most=65_535)
WORKERS = env.number("BRAIN_WORKERS", 2, least=1, most=64)
TRUST_PROXY = env.flag("BRAIN_TRUST_PROXY")
# Each of them adds the address it saw to X-Forwarded-For; what stands before these was written by anybody.
PROXY_COUNT = env.number("BRAIN_PROXY_COUNT", 1, least=1, most=16) if TRUST_PROXY else 0
DEBUG = env.flag("BRAIN_DEBUG")

LOOPBACK_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
WILDCARD_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - names them, binds nothing
_shown_host = WILDCARD_HOSTS.get(HOST, f"[{HOST}]" if ":" in HOST else HOST)
PUBLIC_URL = env.origin("BRAIN_PUBLIC_URL", f"http://{_shown_host}:{PORT}")
_public = urlsplit(PUBLIC_URL)
IS_HTTPS = _public.scheme == "https"
_public_name = _public.hostname or ""
_public_host = f"[{_public_name}]" if ":" in _public_name else _public_name
ALLOWED_HOSTS = sorted({_public_host, _shown_host, *LOOPBACK_HOSTS})
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]

# Apps, from the roof down to the floor that has tables, then what they stand on.
INSTALLED_APPS = [
    "brain",
    "web",
    "mcpapi",
    "backup",
    "kb",
    "access",
    "axes",
    "guardian",
    "oauth2_provider",
    "rest_framework",
    "mcp_server",
    "django.contrib.admin.apps.SimpleAdminConfig",  # brain.desk is the only site
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "brain.middleware.RequestEvents",
    "django.middleware.security.SecurityMiddleware",
    "brain.middleware.NothingIsCached",
    "csp.middleware.CSPMiddleware",
    "brain.middleware.BodyLimits",  # before anything that could read a body; those above only add headers
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "brain.middleware.PacesOfSessions",
    "brain.middleware.Refusals",
    "axes.middleware.AxesMiddleware",  # last: it replaces the answer to a sign-in while such are paused
]
ROOT_URLCONF = "brain.urls"
WSGI_APPLICATION = "brain.wsgi.application"
DATA_UPLOAD_MAX_MEMORY_SIZE = limits.MCP_BODY_MAX_BYTES  # brain.middleware.BodyLimits holds the rest to less

# SQLite: IMMEDIATE loses no update under contention, FULL keeps a revocation through a power cut, and a connection
# stays with its thread, since opening one costs more than the query.
DATABASE_FILE = DATA_DIR / "db.sqlite3"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": DATABASE_FILE,
        "CONN_MAX_AGE": None,
        "ATOMIC_REQUESTS": False,
        "OPTIONS": {
            "timeout": 20,  # seconds
            "transaction_mode": "IMMEDIATE",
            "init_command": (
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-20000; "
                "PRAGMA mmap_size=134217728; PRAGMA journal_size_limit=67108864; PRAGMA temp_store=MEMORY;"
            ),
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# People. Grants are judged by access.authorizer alone, so no backend of guardian's is asked.
AUTH_USER_MODEL = "access.Identity"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "access.sign_in.PeopleBackend"]
ANONYMOUS_USER_NAME = None  # guardian would make a phantom identity
GUARDIAN_MONKEY_PATCH_USER = False
GUARDIAN_MONKEY_PATCH_GROUP = False
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "OPTIONS": {"user_attributes": ("username", "name", "email")},
    },
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 8}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

# Guessing passwords. A name and an address together are paused, whether there is such a person or not: a name alone
# would let anybody lock anybody out, an address alone a whole office.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = limits.SIGN_IN_TRIES
AXES_COOLOFF_TIME = timedelta(minutes=limits.SIGN_IN_PAUSE_MINUTES)
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False  # who tries again too early does not wait longer
AXES_RESET_ON_SUCCESS = True
AXES_USERNAME_CALLABLE = "access.sign_in.name_tried"
AXES_CLIENT_IP_CALLABLE = "access.sign_in.address_of"
AXES_LOCKOUT_CALLABLE = "web.sign_in.paused"
AXES_SENSITIVE_PARAMETERS = ["username", "ip_address", "csrfmiddlewaretoken", "next"]
AXES_DISABLE_ACCESS_LOG = True  # what somebody did stands in the audit
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/files/"
LOGOUT_REDIRECT_URL = "/login/"

# Cookies. A name of our own, since browsers share cookies between the ports of a host; `__Host-` where it is allowed.
_cookie_prefix = "__Host-brain" if IS_HTTPS else "brain"
SESSION_COOKIE_NAME = f"{_cookie_prefix}_session"
CSRF_COOKIE_NAME = f"{_cookie_prefix}_csrf"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_HTTPS
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "brain.refusals.stale_form"
SESSION_COOKIE_AGE = 14 * 24 * 60 * 60  # seconds
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

# What every answer says to the browser.
SECURE_HSTS_SECONDS = 365 * 24 * 60 * 60 if IS_HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if TRUST_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
SILENCED_SYSTEM_CHECKS = [
    "guardian.W001",  # guardian's backend is left out: access.authorizer judges
    "oauth2_provider.W008",  # http is for programs on the person's own machine; web.oauth.redirects refuses the rest
    "security.W005",  # other names below the same domain may not be ours to pin to https
    "security.W008",  # the proxy that speaks https also redirects to it
    "security.W021",  # preloading HSTS is a decision about a domain, not about Brain
]

# OAuth for MCP clients (docs/decisions/0010). The library's tables are always there, its addresses only while on.
OAUTH = env.flag("BRAIN_OAUTH")
OAUTH2_PROVIDER_APPLICATION_MODEL = "oauth2_provider.Application"
OAUTH2_PROVIDER_GRANT_MODEL = "access.AuthorizationCode"
OAUTH2_PROVIDER = {
    "OAUTH2_VALIDATOR_CLASS": "web.oauth.validator.Validator",
    "SCOPES": {
        "knowledgebase:read": "Browse, search and read",
        "knowledgebase:write": "Create, change and delete",
    },
    "DEFAULT_SCOPES": ["knowledgebase:read"],
    "OIDC_ISS_ENDPOINT": PUBLIC_URL,  # the library's name for the issuer of RFC 8414 too
    "OAUTH2_PROTECTED_RESOURCE_IDENTIFIER": f"{PUBLIC_URL}/mcp",
    "OAUTH2_PROTECTED_RESOURCE_NAME": "Brain",
    "OAUTH2_RESPONSE_TYPES_SUPPORTED": ["code"],
    "OAUTH2_GRANT_TYPES_SUPPORTED": ["authorization_code", "refresh_token"],
    "OAUTH2_TOKEN_ENDPOINT_AUTH_METHODS_SUPPORTED": ["none"],
    "DCR_ENABLED": True,
    "CIMD_ENABLED": False,  # fetches addresses that strangers name
    "ALLOW_LOCALHOST_LOOPBACK": True,
    "AUTHORIZATION_CODE_EXPIRE_SECONDS": limits.OAUTH_CODE_SECONDS,
    "ACCESS_TOKEN_EXPIRE_SECONDS": limits.OAUTH_TOKEN_SECONDS,
    "REFRESH_TOKEN_EXPIRE_SECONDS": limits.OAUTH_IDLE_DAYS * 24 * 60 * 60,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    "COMPLIANT_BCP_RFC9700_IMPLICIT_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
    "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
    "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
    "COMPLIANT_BCP_RFC9700_REFRESH_TOKEN": True,
    "COMPLIANT_BCP_RFC9700_REDIRECT_URI_MATCHING": True,
    "COMPLIANT_BCP_RFC9700_PKCE_REQUIRED": True,
}

# Pages.
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]
STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"  # collected at each start; two installations of one checkout do not meet
# Of the libraries' files only those of the desk.
STATICFILES_DIRS = [BASE_DIR / "static", ("admin", Path(admin.__file__).parent / "static" / "admin")]
STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]  # no library's pages are served
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},  # nothing is uploaded through Django
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

# MCP (docs/decisions/0001): the library's own tool stays out, and no session is kept.
DJANGO_MCP_GLOBAL_SERVER_CONFIG = {"name": "brain", "stateless": True}
DJANGO_MCP_GET_SERVER_INSTRUCTIONS_TOOL = False
REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "UNAUTHENTICATED_USER": None,
}

LOGGING = log.configuration(level="DEBUG" if DEBUG else "INFO")
log.configure()

UNKNOWN_VARIABLES = env.unknown()  # the start names them; a secret among them has ended it here
env.drop_secrets()
