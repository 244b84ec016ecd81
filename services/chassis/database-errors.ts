const networkCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
]);
/** node-postgres's own errors have no codes. */
const driverMessages =
  /timeout exceeded when trying to connect|^timeout expired$|Connection terminated|Query read timeout|Client has encountered a connection error/;
const timeoutCodes = new Set(['ETIMEDOUT', 'EHOSTUNREACH', 'EAI_AGAIN']);
/** Messages of node-postgres when connecting, a query or waiting for a pooled connection takes too long. */
const timeoutMessages =
  /connection timeout|^timeout expired$|Query read timeout|timeout exceeded when trying to connect/;

/** Whether the database is unavailable or refuses the login, so that the statement is not at fault. */
export function isUnavailable(error: unknown): boolean {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  // Classes 08 connection, 28 login refused, 3D no such database, 53 resources, 57 operator intervention (shutdown,
  // statement timeout), 58 system errors; 25006 read-only.
  return (
    networkCodes.has(code) ||
    /^(08|28|3D|53|57|58)...$/.test(code) ||
    code === '25006' ||
    driverMessages.test(message)
  );
}

/** Whether a time limit ended the wait, so that the next query would probably wait as long. */
export function isTimeout(error: unknown): boolean {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  return timeoutCodes.has(code) || timeoutMessages.test(message);
}
