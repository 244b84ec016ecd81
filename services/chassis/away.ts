const networkErrors = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
]);
/** node-postgres has no codes for its own errors. */
const driverErrors =
  /timeout exceeded when trying to connect|^timeout expired$|Connection terminated|Query read timeout|Client has encountered a connection error/;
const silentNetwork = new Set(['ETIMEDOUT', 'EHOSTUNREACH', 'EAI_AGAIN']);
/** Of a connection, of a query, and of the wait for one of the pool's connections. */
const timeLimits =
  /connection timeout|^timeout expired$|Query read timeout|timeout exceeded when trying to connect/;

/** Whether the database is away for the moment, or lets nobody in: not a fault of the statement. */
export function isAway(error: unknown): boolean {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  // Classes 08 connection, 28 login refused, 3D no such database, 53 resources, 57 operator intervention (shutdown,
  // statement timeout), 58 errors of its system; 25006 read-only.
  return (
    networkErrors.has(code) ||
    /^(08|28|3D|53|57|58)...$/.test(code) ||
    code === '25006' ||
    driverErrors.test(message)
  );
}

/** Whether the database said nothing for as long as one waits: who asks it the same again waits as long. */
export function isSilent(error: unknown): boolean {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  return silentNetwork.has(code) || timeLimits.test(message);
}
