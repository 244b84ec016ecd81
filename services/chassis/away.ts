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

/** Whether the database is away for the moment: not a fault of the statement. */
export function isAway(error: unknown): boolean {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  // Classes 08 connection, 53 resources, 57 operator intervention (shutdown, statement timeout), 25006 read-only.
  return (
    networkErrors.has(code) || /^(08|53|57)...$/.test(code) || code === '25006' || driverErrors.test(message)
  );
}
