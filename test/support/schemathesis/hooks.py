"""Adds to schemathesis.toml what depends on the run: the callers and the existing data."""

import json
import os
import random
from pathlib import Path

import requests
import schemathesis
from hypothesis import strategies
from schemathesis.openapi.checks import ObjectLevelAuthorizationViolation, RejectedPositiveData

run_context = json.loads(os.environ["SCHEMATHESIS_CONTEXT"])
gateway = run_context["gateway"]
numbers = random.Random(int(os.environ["SCHEMATHESIS_SEED"]))


def address() -> str:
    """Returns a random client IP address, because login limits count by address."""
    return ".".join(["10", *(str(numbers.randint(1, 254)) for _ in range(3))])


class SessionUser:
    """Sends the requests that end sessions as a separate user of the same role, and logs in again afterwards."""

    def __init__(self, credentials):
        self.credentials = credentials
        self.token = None

    def authorization(self) -> dict:
        if self.token is None:
            headers = {"X-Forwarded-For": address()}
            answer = requests.post(f"{gateway}/api/login", json=self.credentials, headers=headers, timeout=30)
            self.token = answer.json()["token"]
        return {"Authorization": f"Bearer {self.token}"}

    def session(self) -> int:
        """Returns the id of one of the user's sessions."""
        answer = requests.get(f"{gateway}/api/sessions", headers=self.authorization(), timeout=30)
        return answer.json()["items"][0]["id"]


session_user = SessionUser(run_context["session_user"]) if "session_user" in run_context else None
# listSessions as well: its ids then belong to the session user.
session_operations = {"logout", "identityLogout", "deleteSessions", "deleteSession", "listSessions", "changePassword"}
guessing = {"login", "pulseSignIn"}
changing = {"updateUser", "deleteUser", "createTemporaryPassword"}
forms_of_a_page = {"pulseSignIn", "pulseSignOut", "pulseRetry"}


def id_of(case) -> str:
    return case.operation.definition.raw["operationId"]


def known_body(name):
    """Returns a body that needs knowledge of the existing data."""
    if name in guessing and session_user:
        return session_user.credentials
    if name == "changePassword" and session_user:
        new = f"own passphrase {numbers.getrandbits(64):x}"
        return {"current_password": session_user.credentials["password"], "new_password": new}
    if name == "token":
        return {"grant_type": "client_credentials", **run_context["client"]}
    return None


@schemathesis.hook
def before_call(context, case, kwargs):
    name = id_of(case)
    is_positive = case.meta is not None and case.meta.generation.mode.is_positive
    is_known = is_positive and numbers.random() < 0.5
    if name in guessing:
        case.headers["X-Forwarded-For"] = address()
    # Browsers send the origin of the page with a form.
    if name in forms_of_a_page and numbers.random() < 0.8:
        case.headers["Origin"] = gateway
    # Prevents an admin from deleting the accounts of this run, and from replacing their passwords.
    if name in changing and str(case.path_parameters.get("id")) in run_context["accounts"]:
        case.path_parameters["id"] = 9007199254740991
    if name in session_operations and session_user and case.auth_identity:
        case.headers.update(session_user.authorization())
        if name == "deleteSession" and is_known:
            case.path_parameters["id"] = session_user.session()
    if is_known and (body := known_body(name)):
        case.body = body
        # The token endpoint would read client credentials from this header.
        if name == "token":
            case.headers.pop("Authorization", None)


@schemathesis.hook
def after_call(context, case, response):
    name = id_of(case)
    if session_user is None or name not in session_operations or case.method == "GET" or response.status_code >= 300:
        return
    session_user.token = None
    if name == "changePassword":
        session_user.credentials = {**session_user.credentials, "password": case.body["new_password"]}


# Errors for well-formed requests that do not match existing data, which the document cannot express.
misfits = {
    # RFC 6749 §5.2: invented codes, refresh tokens and scopes, and parameters required by another grant type.
    "token": {"invalid_grant", "invalid_scope", "invalid_request"},
    "identityCallback": {"identity_login_unknown"},
    # Invented links, logout tokens and codes.
    "resetPassword": {"invalid_reset_token"},
    "backchannelLogout": {"invalid_request"},
    "confirmTotp": {"invalid_code"},
    # An invented ETag, a key used by another request, a required webform.
    "updateLetter": {"precondition_failed"},
    "updateLetterSkippedWebform": {"precondition_failed", "idempotency_key_reused", "webform_required"},
    # The example in the document stands for the bytes of a file.
    "upload": {"idempotency_key_reused", "unsupported_media_type"},
    "createLetter": {"idempotency_key_reused"},
    # A range beyond the end of the file.
    "readVariant": {"range_not_satisfiable"},
}
# The document cannot express these rules: the configured password length and return URLs, the owner's current password,
# the webforms and the user of a letter, cursors, and parameters that need or exclude each other.
fields = {
    "updateLetterSkippedWebform": {"body.webform_id"},
    "identityLogin": {"query.return_to"},
    "createUser": {"body.password"},
    "createLetter": {"body.user_id", "body.webforms"},
    "listInvalidations": {"query.id"},
    "listContent": {"query.ids", "query.cursor"},
    "listChanges": {"query.after"},
    "changePassword": {"body.current_password", "body.new_password"},
}


def is_misfit(name, response) -> bool:
    if name not in {*misfits, *fields}:
        return False
    error = response.json()
    if error["error"] == "validation_failed":
        return name in fields and {detail["path"] for detail in error["details"]} <= fields[name]
    return error["error"] in misfits.get(name, set())


def has_made_up_id(case, response) -> bool:
    """Is the only error an id that is not a number? Links can reuse a path segment as an id."""
    if response.status_code != 422 or str((case.path_parameters or {}).get("id", 0)).isdigit():
        return False
    return {detail["path"] for detail in response.json().get("details", [])} == {"path.id"}


logs = {"listAudit", "listInvalidations", "listFailedJobs"}
letters = {"readLetter", "readLetterHistory"}


@schemathesis.hook
def filter_failure(context, failure, case, response):
    name = id_of(case)
    if isinstance(failure, RejectedPositiveData) and is_misfit(name, response):
        return False
    if isinstance(failure, RejectedPositiveData) and has_made_up_id(case, response):
        return False
    # Logs are the same for every reader, and an admin's letters:write allows reading every letter.
    if isinstance(failure, ObjectLevelAuthorizationViolation):
        return name not in (logs | letters if run_context["role"] == "admin" else logs)
    # An invented segment, for example `retry` as an id, can match another path with other methods.
    if response.status_code == 405 and "{" in case.path:
        return case.formatted_path not in case.operation.schema.raw_schema["paths"]
    return True


# The type of a file is detected from its bytes: provide valid files for each type in the document.
for kind in Path("files").glob("*/*"):
    files = [file.read_bytes() for file in sorted(kind.iterdir())]
    schemathesis.openapi.media_type(str(kind.relative_to("files")), strategies.sampled_from(files))
