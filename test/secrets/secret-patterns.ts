/** A secret that must not appear in unexpected places. */
export interface Secret {
  /** For example `access token`; the results count by kind. */
  kind: string;
  value: string;
}

interface Needle extends Secret {
  form: string;
  text: string;
}

export interface Finding {
  kind: string;
  form: string;
  /** The match with the text around it. */
  around: string;
}

/** Converts bytes to characters, so that any text can be searched for any bytes. */
export const latin1 = (value: string | Buffer): string => Buffer.from(value as string).toString('latin1');

/** Returns the base64 forms inside longer data, one per offset, without characters that depend on its neighbours. */
function insideBase64(value: string, encoding: 'base64' | 'base64url'): string[] {
  return [0, 1, 2].map((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(value)]);
    const whole = bytes.toString(encoding).replaceAll('=', '');
    const first = Math.ceil((before * 8) / 6);
    return whole.slice(first, Math.floor((bytes.length * 8) / 6));
  });
}

/** Returns both halves of a long secret and the unique parts of a JWT, because each part is nearly as sensitive. */
function partsOf(value: string): [string, string][] {
  const [, payload, signature] = /^eyJ[\w-]*\.([\w-]+)\.([\w-]+)$/.exec(value) ?? [];
  if (payload && signature)
    return [
      ['payload', payload],
      ['signature', signature],
      ['half a signature', signature.slice(0, signature.length / 2)],
      ['half a signature', signature.slice(signature.length / 2)],
    ];
  if (value.length < 32) return [];
  const middle = Math.floor(value.length / 2);
  return [
    ['first half', value.slice(0, middle)],
    ['second half', value.slice(middle)],
  ];
}

function formsOf(value: string): [string, string][] {
  const encoded = encodeURIComponent(value);
  const hex = Buffer.from(value).toString('hex');
  const isOpaque = /^[\w-]{43}$/.test(value);
  return [
    ['plain', value],
    ['in JSON', JSON.stringify(value).slice(1, -1)],
    ['in a URL', encoded],
    ['in a form', encoded.replaceAll('%20', '+')],
    ['hex', hex],
    ['hex', hex.toUpperCase()],
    ...(['base64', 'base64url'] as const).flatMap((encoding) =>
      insideBase64(value, encoding).map((text): [string, string] => [encoding, text]),
    ),
    ...(isOpaque
      ? [['its bytes in hex', Buffer.from(value, 'base64url').toString('hex')] as [string, string]]
      : []),
  ];
}

/** Patterns are indexed by their first characters. */
const headLength = 8;

/** Searches texts for all forms of all secrets at once. */
export function createSearch(secrets: readonly Secret[]) {
  const byHead = new Map<string, Needle[]>();
  let count = 0;
  const seen = new Set<string>();
  for (const { kind, value } of secrets) {
    const forms = [
      ...formsOf(value),
      ...partsOf(value).flatMap(([part, text]) =>
        formsOf(text).map(([form, encoded]): [string, string] => [`${part}, ${form}`, encoded]),
      ),
    ];
    for (const [form, plain] of forms) {
      const text = latin1(plain);
      if (text.length < headLength) throw new Error(`a ${kind} is too short to be searched for`);
      if (seen.has(text)) continue;
      seen.add(text);
      count += 1;
      const head = text.slice(0, headLength);
      byHead.set(head, [...(byHead.get(head) ?? []), { kind, value, form, text }]);
    }
  }

  return {
    count,
    find(where: string | Buffer): Finding[] {
      const text = latin1(where);
      const found: Finding[] = [];
      for (let at = 0; at + headLength <= text.length; at += 1) {
        for (const { kind, form, text: needle } of byHead.get(text.slice(at, at + headLength)) ?? []) {
          if (!text.startsWith(needle, at)) continue;
          found.push({ kind, form, around: text.slice(Math.max(0, at - 80), at + 60) });
        }
      }
      return found;
    },
  };
}
