import { HttpError } from '@content-platform/chassis';
import type { EarlyStep } from '../request-context.ts';

/**
 * RFC 3986 §3.3: slashes, pchar, percent-encoded bytes. Parsers disagree on all other characters, and on `;`: some servers
 * remove matrix parameters before they look up a path.
 */
const pathForm = /^(?:\/(?:[\w.~!$&'()*+,=:@-]|%[0-9a-f]{2})*)+$/i;
/** Printable ASCII except `"#<>\`. Browsers do not encode []{}|^ in queries. */
const queryForm = /^[!$-;=?-[\]-~]*$/;

/**
 * Encodings of `/`, `\`, `;`, `?`, `#` and `%`, which change the path when it is decoded or are decoded twice; and of
 * letters, digits and `-._~`, which RFC 3986 §2.3 discourages: some parsers read `/%6De` as `/me`.
 */
const ambiguous = /%(?:2[35d-f]|3[\dbf]|[46][1-9a-f]|[57][0-9a]|5[cf]|7e)/i;
const emptySegment = /\/\//;
const dotSegment = /\/\.\.?(?:\/|$)/;
// oxlint-disable-next-line no-control-regex
const control = /[\0-\x1f\x7f-\x9f]/;

function malformed(message: string): HttpError {
  return new HttpError('malformed_target', message);
}

/** Decodes percent-encoded UTF-8 once. Throws 400 for broken encoding, other charsets and control characters. */
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
 * Checks a request's target before anything parses it, and returns its path unchanged. Every parser reads an accepted
 * target in the same way: it has no dot segments, no empty segments, no encoded structure and no absolute form
 * (RFC 9112 §3.2.2). Throws 400 `malformed_target`.
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

/** Checks the request's target and stores its path in the context. */
export const readTarget: EarlyStep = (request, { locals: context }) => {
  context.path = checkTarget(request.url);
};
