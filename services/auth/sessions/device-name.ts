import Bowser from 'bowser';

const maxLength = 100;

/** Returns a readable name for a User-Agent: `Firefox on Windows`, `curl/8.5.0`. */
export function deviceName(userAgent = ''): string {
  // The parser runs many regular expressions, which would be slow on megabytes of text.
  const given = userAgent.slice(0, 500).replace(/\p{Cc}/gu, '');
  const { browser, os } = given ? Bowser.parse(given) : { browser: {}, os: {} };
  const name = browser.name && os.name ? `${browser.name} on ${os.name}` : given;
  return name.slice(0, maxLength) || 'Unknown device';
}
