import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { ConfigError } from '@content-platform/chassis';

export type Blocklist = ReturnType<typeof readBlocklist>;

const maxMegabytes = 64;
const pieceBytes = 65_536;
const maxPasswords = 1_000_000;
const maxLineBytes = 1_024;
/** As in the files of Have I Been Pwned, where a count follows. */
const sha1Line = /^[0-9a-f]{40}(?::\d+)?$/i;

/** The first 64 bits of a SHA-1. With a million listed passwords, one of 10^13 others is refused by mistake. */
const keyOf = (sha1: string): bigint => BigInt(`0x${sha1.slice(0, 16)}`);
/** The policy checks the stored form, NFC. */
const keyOfPassword = (password: string): bigint => keyOf(hash('sha1', password.normalize('NFC')));

const wrong = (reason: string): ConfigError => new ConfigError(`PASSWORD_BLOCKLIST_FILE: ${reason}`);

/** Reads a file in pieces, because the whole file would double the memory of the process. */
function* linesOf(path: string): Generator<Buffer> {
  const file = openSync(path, 'r');
  try {
    if (fstatSync(file).size > maxMegabytes * 1_048_576)
      throw wrong(`${path} is larger than ${maxMegabytes} MB`);
    const piece = Buffer.alloc(pieceBytes);
    let rest = Buffer.alloc(0);
    // Ends early at a line that is too long, for which readLine throws.
    for (let read = 1; read > 0 && rest.length <= maxLineBytes;) {
      read = readSync(file, piece);
      const text = Buffer.concat([rest, piece.subarray(0, read)]);
      let start = 0;
      for (let end; (end = text.indexOf('\n', start)) !== -1; start = end + 1)
        yield text.subarray(start, end);
      rest = text.subarray(start);
    }
    yield rest;
  } finally {
    closeSync(file);
  }
}

/** Returns the key of a line; undefined for an empty line. */
function readLine(bytes: Buffer, place: string): bigint | undefined {
  if (bytes.length > maxLineBytes) throw wrong(`${place} is longer than ${maxLineBytes} bytes`);
  if (!isUtf8(bytes)) throw wrong(`${place} is not UTF-8`);
  const line = bytes.toString().replace(/^\uFEFF|\r$/g, '');
  if (/\p{Cc}/u.test(line)) throw wrong(`${place} contains a control character`);
  if (line === '') return undefined;
  return sha1Line.test(line) ? keyOf(line) : keyOfPassword(line);
}

function readKeys(path: string): BigUint64Array {
  const keys = new BigUint64Array(maxPasswords);
  let [size, number] = [0, 0];
  for (const line of linesOf(path)) {
    number += 1;
    const key = readLine(line, `line ${number} of ${path}`);
    if (key === undefined) continue;
    if (size === maxPasswords) throw wrong(`${path} has more than ${maxPasswords} passwords`);
    keys[size] = key;
    size += 1;
  }
  return keys.subarray(0, size).toSorted();
}

/** Reads a file with one password or SHA-1 of a password on each line. Throws ConfigError. */
export function readBlocklist(path: string) {
  let keys: BigUint64Array;
  try {
    keys = readKeys(path);
  } catch (error) {
    throw error instanceof ConfigError ? error : wrong((error as Error).message);
  }
  return {
    size: keys.length,
    includes(password: string): boolean {
      const key = keyOfPassword(password);
      let [low, high] = [0, keys.length];
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (keys[middle]! < key) low = middle + 1;
        else high = middle;
      }
      return keys[low] === key;
    },
  };
}
