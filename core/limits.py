"""Every bound that a caller can meet, in one place.

Schemas, checks and docs/reference/limits.md read these lines. Units stand in the names: bytes are
bytes of UTF-8, characters are Unicode code points.
"""

KIB = 1024
MIB = 1024 * KIB

# Text, measured after JSON decoding and before line endings are normalised; results are measured again.
CONTENT_MAX_BYTES = 10 * MIB
TITLE_MAX_CHARACTERS = 200
DESCRIPTION_MAX_CHARACTERS = 4_000
TAGS_MAX = 50
TAG_MAX_CHARACTERS = 64
REASON_MAX_CHARACTERS = 500

# Names and paths.
NAME_MAX_CHARACTERS = 64
PATH_MAX_BYTES = 1_024
ID_MAX_CHARACTERS = 64

# Calls.
REQUEST_ID_MAX_CHARACTERS = 128
VERSION_MAX_CHARACTERS = 64
CURSOR_MAX_CHARACTERS = 4_096
NAME_FILTER_MAX_CHARACTERS = 256
QUERY_MAX_CHARACTERS = 256
SEARCH_MATCHES_MAX = 5
PAGE_DEFAULT = 50
PAGE_MAX = 100

# Bodies of HTTP requests.
MCP_BODY_MAX_BYTES = 64 * MIB
BODY_MAX_BYTES = 5 * MIB // 2

# How long an outcome is kept for retries, and when a caller who was told to wait should come back.
OUTCOME_DAYS = 7
RETRY_AFTER_SECONDS = 1
STORAGE_RETRY_AFTER_SECONDS = 3
WRITER_WAIT_SECONDS = 10

# Identities.
USERNAME_MAX_CHARACTERS = 64
DISPLAY_NAME_MAX_CHARACTERS = 120
PURPOSE_MAX_CHARACTERS = 500
TOKEN_NAME_MAX_CHARACTERS = 120
TOKEN_DAYS_MAX = 3_650
TOKEN_OVERLAP_DEFAULT_HOURS = 24
TOKEN_OVERLAP_MAX_HOURS = 30 * 24
FOLDER_SCOPES_MAX = 100

# Signing in: after so many wrong passwords for a name from one address, neither is listened to for a while.
SIGN_IN_TRIES = 5
SIGN_IN_PAUSE_MINUTES = 15

# OAuth: how long a client that nobody uses stays connected, a token of it, a code, and what nobody came back for.
OAUTH_IDLE_DAYS = 30
OAUTH_TOKEN_SECONDS = 60 * 60
OAUTH_CODE_SECONDS = 60
OAUTH_UNUSED_REGISTRATION_DAYS = 1
OAUTH_ENDED_REGISTRATION_DAYS = 90
OAUTH_USED_CODE_DAYS = 1
HOST_MAX_CHARACTERS = 255
REDIRECT_URIS_MAX = 10
REDIRECT_URI_MAX_CHARACTERS = 2_000
REGISTRATION_MAX_BYTES = 16 * KIB
REGISTRATIONS_PER_HOUR = 100
REGISTRATIONS_PER_HOUR_OF_ONE = 20

# One import is one record of the log, so it has to fit into memory a few times over.
IMPORT_MAX_FILES = 100_000
IMPORT_MAX_BYTES = 1_024 * MIB

# Patching: what an update may carry beside whole content; the searching and the words that a patch may cost.
DIFF_MAX_BYTES = 2 * MIB
EDITS_MAX = 100
SEARCH_BUDGET_CHARACTERS = 400 * MIB
PATCH_FAILURES_MAX = 10
PATCH_DETAILS_MAX_BYTES = 8 * KIB
PATCH_EXCERPT_MAX_CHARACTERS = 240
PATCH_WINDOW_MAX_LINES = 6
PATCH_CANDIDATES_MAX = 5

# A conflict's diff: how long it may be, and how much of the log is read to find the version it starts from.
DIFF_SINCE_MAX_BYTES = 32 * KIB
HISTORY_SCAN_BYTES = 256 * MIB

# Rendering: a larger entry is shown as its source.
RENDER_MAX_BYTES = 1 * MIB
RENDER_SECONDS = 5
RENDER_MEMORY_BYTES = 1_024 * MIB

# Selecting by heading. A longer heading is a boundary of sections and cannot be selected itself.
HEADING_MAX_CHARACTERS = 500
OUTLINE_MAX = 50
OUTLINE_TEXT_MAX_CHARACTERS = 200
OUTLINE_SECONDS = 40

# Work of one server process: threads, how many of them may wait for the writer lock or carry a large body,
# and from which size a body counts as large.
WORKER_THREADS = 16
HEAVY_WORK_MAX = WORKER_THREADS // 2
LARGE_BODY_BYTES = 1 * MIB
