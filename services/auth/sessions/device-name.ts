import Bowser from 'bowser';

const maxLength = 100;

/** What a person knows a device by, made of its User-Agent: `Firefox on Windows`, `curl/8.5.0`. */
export function deviceName(userAgent = ''): string {
  // Parsing is a row of regular expressions: not on megabytes.
  const given = userAgent.slice(0, 500);
  const { browser, os } = given ? Bowser.parse(given) : { browser: {}, os: {} };
  const name = browser.name && os.name ? `${browser.name} on ${os.name}` : given;
  return name.slice(0, maxLength) || 'Unknown device';
}
