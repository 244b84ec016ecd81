import { unescape as decode } from 'node:querystring';
import Bowser from 'bowser';

/** Returns a readable name for a User-Agent: `Firefox on Windows`, `curl/8.5.0`. */
export function deviceName(userAgent = ''): string {
  // Node reads UTF-8 as Latin-1. iOS percent-encodes an app's name. The parser would be slow on megabytes of text.
  const text = Buffer.from(userAgent.slice(0, 500), 'latin1').toString();
  const given = text.replace(/(%[\da-f]{2})+/gi, (escapes) => decode(escapes)).replace(/\p{C}/gu, '');
  const { browser, os } = given ? Bowser.parse(given) : { browser: {}, os: {} };
  const name = browser.name && os.name ? `${browser.name} on ${os.name}` : given;
  return name.slice(0, 100).toWellFormed() || 'Unknown device';
}
