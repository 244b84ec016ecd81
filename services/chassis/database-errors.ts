const networkCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
]);
/** Messages of node-postgres's own errors, which have no codes. */
const driverMessages =
  /timeout exceeded when trying to connect|^timeout expired$|Connection terminated|Query read timeout|Client has encountered a connection error/;
const timeoutCodes = new Set(['ETIMEDOUT', 'EHOSTUNREACH', 'EAI_AGAIN']);
/** Messages of node-postgres when connecting, a query or waiting for a pooled connection takes too long. */
const timeoutMessages =
  /connection timeout|^timeout expired$|Query read timeout|timeout exceeded when trying to connect/;

/** Returns whether the database is unavailable or refuses the login. The statement is then not the cause. */
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

/** Returns whether a time limit ended the query. The next query would probably wait as long. */
export function isTimeout(error: unknown): boolean {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  return timeoutCodes.has(code) || timeoutMessages.test(message);
}
