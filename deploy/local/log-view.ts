const LEVELS: Record<string, string> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'error',
  60: 'fatal',
};
const SHOWN_ELSEWHERE = new Set([
  'time',
  'level',
  'service',
  'message',
  'msg',
  'pid',
  'hostname',
  'trace_id',
]);

/** A line of a process's log: its level, and the line as a person reads it. */
export interface LogLine {
  level: string;
  text: string;
}

/** Of an error its message: its stack is in the log file. */
function show(value: unknown): string {
  if (typeof value === 'string') return value;
  const { message, stack } = (value ?? {}) as { message?: unknown; stack?: unknown };
  return typeof message === 'string' && stack !== undefined ? message : (JSON.stringify(value) ?? '');
}

/**
 * Makes a JSON log line readable: `12:00:01 gateway  info  request done status=200`.
 * Anything else that a process prints (a crash of Node itself, say) is shown as it is.
 */
export function readableLine(name: string, line: string): LogLine {
  let entry: Record<string, unknown> | undefined;
  try {
    const parsed: unknown = JSON.parse(line);
    if (typeof parsed === 'object' && parsed !== null) entry = parsed as Record<string, unknown>;
  } catch {
    // not JSON
  }
  const at = entry?.time === undefined ? new Date() : new Date(entry.time as string | number);
  const clock = Number.isNaN(at.getTime()) ? '' : at.toTimeString().slice(0, 8);
  if (!entry) return { level: 'error', text: `${clock} ${name.padEnd(13)} ${line}` };
  const level = LEVELS[String(entry.level)] ?? show(entry.level);
  const fields = Object.entries(entry)
    .filter(([key]) => !SHOWN_ELSEWHERE.has(key))
    .map(([key, value]) => `${key}=${show(value)}`);
  const text = [
    clock,
    name.padEnd(13),
    level.padEnd(5),
    show(entry.message ?? entry.msg ?? ''),
    ...fields,
  ].join(' ');
  return { level, text };
}
