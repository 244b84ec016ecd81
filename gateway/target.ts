import { HttpError } from '@content-platform/chassis';

/**
 * RFC 3986 §3.3: slashes, pchar, percent-encoded bytes. Anything else is read differently by different parsers, and so is
 * `;`: some servers cut off matrix parameters before they look a path up.
 */
const pathForm = /^(?:\/(?:[\w.~!$&'()*+,=:@-]|%[0-9a-f]{2})*)+$/i;
/** Printable ASCII but `"#<>\`; browsers send []{}|^ in queries as they are. */
const queryForm = /^[!$-;=?-[\]-~]*$/;

/**
 * Encodings of `/`, `\`, `;`, `?`, `#` and `%`: the path would change when it is decoded, or be decoded twice. And of
 * letters, digits and `-._~`, which RFC 3986 §2.3 says nobody should encode: `/%6De` is `/me` to some parsers, and not to
 * others.
 */
const ambiguous = /%(?:2[35d-f]|3[\dbf]|[46][1-9a-f]|[57][0-9a]|5[cf]|7e)/i;
const emptySegment = /\/\//;
const dotSegment = /\/\.\.?(?:\/|$)/;
// oxlint-disable-next-line no-control-regex
const control = /[\0-\x1f\x7f-\x9f]/;

function malformed(message: string): HttpError {
  return new HttpError(400, 'malformed_target', message);
}

/** `text` as UTF-8, decoded once. Throws 400 for broken percent-encoding, other charsets and control characters. */
function decode(text: string): string {
  let decoded: string;
  try {
    decoded = decodeURIComponent(text);
  } catch {
    throw malformed('The target is not valid percent-encoded UTF-8.');
  }
  if (control.test(decoded)) throw malformed('The target contains a control character.');
  return decoded;
}

/**
 * Checks a request target as it came over the wire, before anything parses it, and returns its path, still as it came.
 * What passes is read in the same way by every parser behind: no dot segment, no empty segment, nothing that decoding
 * turns into structure, no absolute form (RFC 9112 §3.2.2). Throws 400 `malformed_target`.
 */
export function checkTarget(target: string): string {
  const mark = target.indexOf('?');
  const path = mark === -1 ? target : target.slice(0, mark);
  const query = mark === -1 ? '' : target.slice(mark + 1);
  if (!pathForm.test(path))
    throw malformed('The target must be a path of plain or percent-encoded characters.');
  if (ambiguous.test(path))
    throw malformed('The path contains an encoded character that must stand plainly.');
  const decoded = decode(path);
  if (emptySegment.test(decoded)) throw malformed('The path contains an empty segment.');
  if (dotSegment.test(decoded)) throw malformed('The path contains a dot segment.');
  if (!queryForm.test(query)) throw malformed('The query contains a character that must be encoded.');
  decode(query);
  return path;
}
