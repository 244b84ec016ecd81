import { HttpError } from '@content-platform/chassis';
import type { Body, token } from '@content-platform/contract';

interface ClientCredentials {
  name: string;
  secret: string;
}

const basic = /^basic +([A-Za-z0-9+/]+={0,2})$/i;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Returns 401 `invalid_client` with the challenge that RFC 6749 §5.2 requires. */
export function invalidClient(message: string, cause?: unknown): HttpError<'invalid_client'> {
  return new HttpError('invalid_client', message, {
    headers: { 'WWW-Authenticate': 'Basic realm="content-platform", charset="UTF-8"' },
    cause,
  });
}

/** Decodes application/x-www-form-urlencoded. Throws URIError. */
const formDecode = (value: string) => decodeURIComponent(value.replaceAll('+', ' '));

function fromHeader(authorization: string): ClientCredentials {
  const encoded = basic.exec(authorization)?.[1];
  if (encoded === undefined) throw invalidClient('Authorization must be Basic here.');
  try {
    const pair = utf8.decode(Buffer.from(encoded, 'base64'));
    const colon = pair.indexOf(':');
    if (colon === -1) throw new Error('no colon');
    return { name: formDecode(pair.slice(0, colon)), secret: formDecode(pair.slice(colon + 1)) };
  } catch (cause) {
    throw invalidClient('Authorization is not well-formed: base64 of the form-encoded id:secret.', cause);
  }
}

/**
 * Reads the client's id and secret from Authorization (each form-encoded inside Basic) or from the body: RFC 6749
 * §2.3.1. Throws 400 `invalid_request` if both are used. Throws 401 `invalid_client` if they are missing or malformed.
 */
export function readClientCredentials(
  authorization: string | undefined,
  { client_id: name, client_secret: secret }: Pick<Body<typeof token>, 'client_id' | 'client_secret'>,
): ClientCredentials {
  if (authorization === undefined) {
    if (name !== undefined && secret !== undefined) return { name, secret };
    throw invalidClient("Send the client's id and secret, in Authorization or in the body.");
  }
  const credentials = fromHeader(authorization);
  // The body may repeat the id of the client in Authorization; any other id is a second method.
  if (secret !== undefined || (name !== undefined && name !== credentials.name)) {
    throw new HttpError('invalid_request', 'Authenticate in Authorization or in the body, not in both.');
  }
  return credentials;
}
