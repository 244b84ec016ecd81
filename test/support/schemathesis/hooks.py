"""What schemathesis is told of the platform beside schemathesis.toml: who asks, and what exists."""

import json
import os
import random
from pathlib import Path

import requests
import schemathesis
from hypothesis import strategies
from schemathesis.openapi.checks import ObjectLevelAuthorizationViolation, RejectedPositiveData

around = json.loads(os.environ["SCHEMATHESIS_AROUND"])
gateway = around["gateway"]
numbers = random.Random(int(os.environ["SCHEMATHESIS_SEED"]))


def address() -> str:
    """A client of its own: guesses are limited by address."""
    return ".".join(["10", *(str(numbers.randint(1, 254)) for _ in range(3))])


class Leaver:
    """Asks for what ends sessions, in the place of another person of the same role, and logs in anew after it."""

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
        """The id of one of its sessions."""
        answer = requests.get(f"{gateway}/api/sessions", headers=self.authorization(), timeout=30)
        return answer.json()["items"][0]["id"]


leaver = Leaver(around["leaver"]) if "leaver" in around else None
# The list, too: its ids are then the leaver's.
leaving = {"logout", "identityLogout", "deleteSessions", "deleteSession", "listSessions", "changePassword"}
guessing = {"login", "pulseSignIn"}
forms_of_a_page = {"pulseSignIn", "pulseSignOut", "pulseRetry"}


def id_of(case) -> str:
    return case.operation.definition.raw["operationId"]


def known_body(name):
    """A body that only who knows the platform can write."""
    if name in guessing and leaver:
        return leaver.credentials
    if name == "changePassword" and leaver:
        new = f"own passphrase {numbers.getrandbits(64):x}"
        return {"current_password": leaver.credentials["password"], "new_password": new}
    if name == "token":
        return {"grant_type": "client_credentials", **around["client"]}
    return None


@schemathesis.hook
def before_call(context, case, kwargs):
    name = id_of(case)
    is_positive = case.meta is not None and case.meta.generation.mode.is_positive
    is_known = is_positive and numbers.random() < 0.5
    if name in guessing:
        case.headers["X-Forwarded-For"] = address()
    # Browsers say which page sent a form.
    if name in forms_of_a_page and numbers.random() < 0.8:
        case.headers["Origin"] = gateway
    # An admin would otherwise delete the accounts of this run.
    if name in {"updateUser", "deleteUser"} and str(case.path_parameters.get("id")) in around["accounts"]:
        case.path_parameters["id"] = 9007199254740991
    if name in leaving and leaver and case.auth_identity:
        case.headers.update(leaver.authorization())
        if name == "deleteSession" and is_known:
            case.path_parameters["id"] = leaver.session()
    if is_known and (body := known_body(name)):
        case.body = body
        # There, the credentials of the client would be in it.
        if name == "token":
            case.headers.pop("Authorization", None)


@schemathesis.hook
def after_call(context, case, response):
    name = id_of(case)
    if leaver is None or name not in leaving or case.method == "GET" or response.status_code >= 300:
        return
    leaver.token = None
    if name == "changePassword":
        leaver.credentials = {**leaver.credentials, "password": case.body["new_password"]}


# A document says which requests are well-formed, and not which of them fit what is there: the errors that say so.
misfits = {
    # RFC 6749 §5.2: codes, refresh tokens and scopes that are made up, and parameters that another grant type needs.
    "token": {"invalid_grant", "invalid_scope", "invalid_request"},
    "identityCallback": {"identity_login_unknown"},
    # An ETag that is made up, a key that came with another request, a webform that is needed.
    "updateLetter": {"precondition_failed"},
    "updateLetterSkippedWebform": {"precondition_failed", "idempotency_key_reused", "webform_required"},
    "upload": {"idempotency_key_reused"},
    # A range behind the file's end.
    "readVariant": {"range_not_satisfiable"},
}
# How long a password must be is configured, and where a login may return to; the current password is known to its owner,
# and which webforms a letter has.
fields = {
    "updateLetterSkippedWebform": {"body.webform_id"},
    "identityLogin": {"query.return_to"},
    "createUser": {"body.password"},
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
    """A link can carry on a word of a path for an id: no number, as the document asks for, and that is all that is wrong."""
    if response.status_code != 422 or str((case.path_parameters or {}).get("id", 0)).isdigit():
        return False
    return {detail["path"] for detail in response.json().get("details", [])} == {"path.id"}


@schemathesis.hook
def filter_failure(context, failure, case, response):
    name = id_of(case)
    if isinstance(failure, RejectedPositiveData) and is_misfit(name, response):
        return False
    if isinstance(failure, RejectedPositiveData) and has_made_up_id(case, response):
        return False
    # With letters:write one reads anybody's letters, and what is in the audit log is the same for every admin.
    if isinstance(failure, ObjectLevelAuthorizationViolation):
        return not (around["role"] == "admin" and name in {"listAudit", "readLetter", "readLetterHistory"})
    # A made up segment, as `retry` for an id, can make the path another one, which has other methods.
    if response.status_code == 405 and "{" in case.path:
        return case.formatted_path not in case.operation.schema.raw_schema["paths"]
    return True


# A file is what its content says: of each kind that the document names there are some that are taken.
for kind in Path("files").glob("*/*"):
    files = [file.read_bytes() for file in sorted(kind.iterdir())]
    schemathesis.openapi.media_type(str(kind.relative_to("files")), strategies.sampled_from(files))
