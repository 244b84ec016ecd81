import fc from 'fast-check';
// In most lists `$` stands for the text that the code inserts.
import lists from './framing-cases.json' with { type: 'json' };

/** Bytes sent on one connection, followed by a request of a victim. */
export interface FramingCase {
  name: string;
  bytes: string;
  marks: string[];
  /**
   * `clean`: unambiguous; arrives with this body. If it `ends` the connection, the victim's request may be missing.
   * `lenient`: is refused, or arrives with this body. `refused`: ambiguous or malformed; nothing of it arrives.
   * `answered`: unambiguous, but the gateway refuses it itself.
   */
  outcome: { kind: 'clean' | 'lenient'; body: string; ends?: boolean } | { kind: 'refused' | 'answered' };
}

interface Carrier {
  name: string;
  /** Request line without the version, with the mark. */
  line: string;
  headers: string;
  body: boolean;
  forwarded: boolean;
}

const inner = 'GET /.well-known/jwks.json?mark=inner HTTP/1.1\r\nHost: x\r\n\r\n';
const json = 'Content-Type: application/json\r\n';

const carriersFor = (token: string): Carrier[] => [
  { name: 'held', line: 'POST /api/login?mark=attack', headers: json, body: true, forwarded: true },
  {
    name: 'streamed',
    line: 'POST /api/upload?mark=attack',
    headers: `Content-Type: multipart/form-data; boundary=x\r\nAuthorization: Bearer ${token}\r\n`,
    body: true,
    forwarded: true,
  },
  {
    name: 'no body',
    line: 'GET /.well-known/jwks.json?mark=attack',
    headers: '',
    body: false,
    forwarded: true,
  },
  { name: 'no token', line: 'POST /api/password?mark=attack', headers: json, body: true, forwarded: false },
  { name: 'nowhere', line: 'POST /api/nothing?mark=attack', headers: json, body: true, forwarded: false },
  { name: 'own', line: 'POST /health?mark=attack', headers: json, body: true, forwarded: false },
];

type Coding = [lines: string, kind: 'none' | 'chunked' | 'bad'];
const te = 'Transfer-Encoding';
const codingsOf = (lines: string[], kind: Coding[1]) => lines.map((line): Coding => [`${line}\r\n`, kind]);
const codings: Coding[] = [
  ['', 'none'],
  ...codingsOf(lists.otherHeaders, 'none'),
  ...codingsOf(lists.chunkedCodings, 'chunked'),
  ...codingsOf(lists.badCodings, 'bad'),
];

/** @param n real length of the body */
type Length = [lines: (n: number) => string, kind: 'none' | 'good' | 'bad'];
const lengths: Length[] = [
  [() => '', 'none'],
  [(n) => `Content-Length: ${n}\r\n`, 'good'],
  [(n) => `content-length:${n}\t\r\n`, 'good'],
  [(n) => `Content_Length: 3\r\nContent-Length: ${n}\r\n`, 'good'],
  ...lists.badLengths.map((lines): Length => [(n) => `${lines.replaceAll('$', String(n))}\r\n`, 'bad']),
  [(n) => `Content-Length: 0x${n.toString(16)}\r\n`, 'bad'],
  [(n) => `Content-Length: ${n.toString(16)}h\r\n`, 'bad'],
  [(n) => `Content-Length: ${'9'.repeat(30)}${n}\r\n`, 'bad'],
  [(n) => `Content-Length: ${2n ** 64n + BigInt(n)}\r\n`, 'bad'],
];

const hex = (text: string) => text.length.toString(16);
const chunk = (text: string, size = hex(text), end = '\r\n') => `${size}${end}${text}\r\n`;
/** A chunked body whose data is a request; `decoded` is undefined if the body is malformed. */
const chunkings: [body: string, decoded: string | undefined][] = [
  [`${chunk(inner)}0\r\n\r\n`, inner],
  [`${chunk(inner.slice(0, 9))}${chunk(inner.slice(9))}0\r\n\r\n`, inner],
  [`${chunk(inner, `000${hex(inner)}`)}000\r\n\r\n`, inner],
  [`${chunk(inner, hex(inner).toUpperCase())}0\r\n\r\n`, inner],
  [`${chunk(inner, `${hex(inner)};a`)}0;b=c\r\n\r\n`, inner],
  [`${chunk(inner, `${hex(inner)};a="b;c"`)}0\r\n\r\n`, inner],
  [`${chunk(inner)}0\r\nX-Trailer: y\r\nHost: y\r\nX-User-Id: 1\r\n\r\n`, inner],
  ['0\r\n\r\n', ''],
  ...[
    chunk(inner, (inner.length - 1).toString(16)) + '0\r\n\r\n',
    chunk(inner, (inner.length - 2).toString(16)) + '0\r\n\r\n',
    ...lists.badChunks.map((body) => body.replace('$size', hex(inner)).replace('$body', inner)),
  ].map((body): [string, undefined] => [body, undefined]),
];

const at11 = (carrier: Carrier, headers: string, body = '') =>
  `${carrier.line} HTTP/1.1\r\nHost: x\r\n${carrier.headers}${headers}\r\n${body}`;

/** Expected result of an unambiguous request with `body`. */
function outcomeOf(carrier: Carrier, body: string): FramingCase['outcome'] {
  return carrier.forwarded && (carrier.body || body === '') ? { kind: 'clean', body } : { kind: 'answered' };
}
const refused: FramingCase['outcome'] = { kind: 'refused' };
const attack = ['attack'];

/** Transfer-Encoding and Content-Length in every form, together and alone, in both orders. */
function lengthCases(carriers: Carrier[]): FramingCase[] {
  return carriers.flatMap((carrier) =>
    codings.flatMap(([coding, codingKind]) =>
      lengths.flatMap(([linesOf, lengthKind]) => {
        if (codingKind !== 'bad' && lengthKind === 'none') return [];
        const body = `0\r\n\r\n${inner}`;
        const lines = linesOf(body.length);
        const isClean = codingKind === 'none' && lengthKind === 'good';
        const outcome = isClean ? outcomeOf(carrier, body) : refused;
        // Tests both positions, because some parsers use the first header and others the last.
        return [coding + lines, lines + coding].map((headers) => ({
          name: `${carrier.name}: ${headers}`,
          bytes: at11(carrier, headers, body),
          marks: attack,
          outcome,
        }));
      }),
    ),
  );
}

function chunkCases(carriers: Carrier[]): FramingCase[] {
  return carriers.flatMap((carrier) =>
    codings
      .filter(([, kind]) => kind === 'chunked')
      .flatMap(([coding]) =>
        chunkings.map(([body, decoded]) => ({
          name: `${carrier.name}: ${coding}${body}`,
          bytes: at11(carrier, coding, body),
          marks: attack,
          // A transfer coding means that there is a body, possibly an empty body.
          outcome:
            decoded === undefined
              ? refused
              : carrier.body
                ? outcomeOf(carrier, decoded)
                : { kind: 'answered' as const },
        })),
      ),
  );
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);
const char = (code: number) => String.fromCharCode(code);

/** Malformed header lines. Each contains a header or a request for parsers that end lines elsewhere. */
function lineCases(carriers: Carrier[]): FramingCase[] {
  const controls = [...range(0, 8), 11, 12, ...range(14, 31), 127];
  const bad = [
    ...controls.flatMap((code) => [`X-A${char(code)}B: y`, `X-A: y${char(code)}z`, `${char(code)}X: y`]),
    // Characters that are invalid in header names, and characters beyond ASCII.
    ...[...'"(),/;<=>?@[\\]{} \t\n\r', ...range(128, 255).map(char)].map((text) => `X-A${text}: y`),
    ...lists.badLines,
  ];
  const good = [
    ...range(160, 255)
      .filter((code) => code % 8 === 0)
      .map((code) => `X-A: ${char(code)}`),
    ...lists.goodLines,
  ];
  const make = (carrier: Carrier, line: string, isGood: boolean): FramingCase[] => {
    const length = carrier.body ? `Content-Length: ${inner.length}\r\n` : '';
    const body = carrier.body ? inner : '';
    return [`${line}\r\n${length}`, `${length}${line}\r\n`].map((headers) => ({
      name: `${carrier.name}: ${headers}`,
      bytes: at11(carrier, headers, body),
      marks: attack,
      outcome: isGood ? outcomeOf(carrier, body) : refused,
    }));
  };
  return carriers.flatMap((carrier) => [
    ...bad.flatMap((line) => make(carrier, line, false)),
    ...good.flatMap((line) => make(carrier, line, true)),
  ]);
}

function requestLineCases(carriers: Carrier[]): FramingCase[] {
  return carriers.flatMap((carrier) =>
    lists.requestLines.map((line) => {
      const headers = `Host: x\r\n${carrier.headers}${carrier.body ? `Content-Length: ${inner.length}\r\n` : ''}`;
      return {
        name: `${carrier.name}: ${line}`,
        bytes: `${line.replace('$', carrier.line)}\r\n${headers}\r\n${carrier.body ? inner : ''}`,
        marks: attack,
        // Node's parser accepts these two, as RFC 9112 §3 allows. They do not change where a request ends.
        outcome: /^\$(?:  HTTP\/1\.1| RTSP\/1\.0)$/.test(line)
          ? { kind: 'lenient' as const, body: carrier.body ? inner : '' }
          : refused,
      };
    }),
  );
}

/** Connection headers. They must not remove parts of the message or turn it into a tunnel. */
function connectionCases(carriers: Carrier[]): FramingCase[] {
  const lines = [
    ...lists.connectionOptions.flatMap((name) => [
      `Connection: ${name}`,
      `Connection: keep-alive, ${name}`,
      `Connection: keep-alive\r\nConnection: ${name}`,
      `Proxy-Connection: ${name}`,
      `Keep-Alive: ${name}`,
    ]),
    ...lists.upgrades.flatMap((protocol) => [
      `Upgrade: ${protocol}`,
      `Connection: Upgrade\r\nUpgrade: ${protocol}`,
      `Connection: Upgrade, HTTP2-Settings\r\nUpgrade: ${protocol}\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA`,
      `Connection: keep-alive, upgrade\r\nUpgrade: ${protocol}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13`,
    ]),
    ...lists.connectionLines,
  ];
  return carriers.flatMap((carrier) =>
    lines.flatMap((line) => {
      const framings: [string, string][] = carrier.body
        ? [
            [`Content-Length: ${inner.length}\r\n`, inner],
            [`${te}: chunked\r\n`, `${chunk(inner)}0\r\n\r\n`],
          ]
        : [['', '']];
      return framings.map(([framing, body]) => ({
        name: `${carrier.name}: ${line}\r\n${framing}`,
        bytes: at11(carrier, `${line}\r\n${framing}`, body),
        marks: attack,
        outcome: { ...outcomeOf(carrier, carrier.body ? inner : ''), ends: line.includes('Upgrade: ') },
      }));
    }),
  );
}

function pipelineCases(carriers: Carrier[]): FramingCase[] {
  const clean = carriers.filter(({ forwarded }) => forwarded);
  return range(2, 9).flatMap((count) =>
    clean.map((carrier) => {
      const each = range(1, count).map((number) => `ahead-${number}`);
      const bytes = each.map((mark) => {
        const marked = { ...carrier, line: carrier.line.replace('attack', mark) };
        return carrier.body ? at11(marked, `Content-Length: ${inner.length}\r\n`, inner) : at11(marked, '');
      });
      return {
        name: `${carrier.name}: ${count} ahead`,
        bytes: bytes.join(''),
        marks: each,
        outcome: { kind: 'clean', body: carrier.body ? inner : '' } as const,
      };
    }),
  );
}

/** Returns `count` cases: all cases of the smaller families, and a selection by `seed` of the others. */
export function framingCases(token: string, count: number, seed: number): FramingCase[] {
  const carriers = carriersFor(token);
  const some = (cases: FramingCase[], number: number) =>
    fc.sample(fc.shuffledSubarray(cases, { minLength: Math.min(number, cases.length), maxLength: number }), {
      numRuns: 1,
      seed,
    })[0]!;
  const few = [...requestLineCases(carriers), ...pipelineCases(carriers)];
  const share = Math.floor((count - few.length) / 4);
  const chosen = [chunkCases, lineCases, connectionCases].flatMap((family) => some(family(carriers), share));
  return [...few, ...chosen, ...some(lengthCases(carriers), count - few.length - chosen.length)];
}
