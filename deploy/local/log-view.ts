const shownElsewhere = new Set(['time', 'level', 'service', 'message', 'msg', 'pid', 'hostname', 'trace_id']);

/** C0 except tab, DEL, C1, bidirectional controls, line and paragraph separators. */
// oxlint-disable-next-line no-control-regex
const control = /[\0-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Escapes control characters, because data of requests and events may contain terminal escape sequences. */
export function escapeControls(text: string): string {
  return text.replace(control, (char) =>
    char === '\n' ? '\\n' : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Returns only the message of an error; the log file has its stack. */
function show(value: unknown): string {
  if (typeof value === 'string') return value;
  const { message, stack } = (value ?? {}) as { message?: unknown; stack?: unknown };
  return typeof message === 'string' && stack !== undefined ? message : (JSON.stringify(value) ?? '');
}

/**
 * Returns the level of a JSON log line, and its text for people: `12:00:01 gateway  info  request done status=200`. Other
 * output, for example of a Node crash, has the level `error` and its own text. Control characters are escaped.
 */
export function readableLine(name: string, line: string): { level: string; text: string } {
  let entry: Record<string, unknown> | undefined;
  try {
    const parsed: unknown = JSON.parse(line);
    if (typeof parsed === 'object' && parsed !== null) entry = parsed as Record<string, unknown>;
  } catch {
    // not JSON
  }
  const at = entry?.time === undefined ? new Date() : new Date(entry.time as string | number);
  const clock = Number.isNaN(at.getTime()) ? '' : at.toTimeString().slice(0, 8);
  if (!entry) return { level: 'error', text: `${clock} ${name.padEnd(13)} ${escapeControls(line)}` };
  const level = show(entry.level);
  const fields = Object.entries(entry)
    .filter(([key]) => !shownElsewhere.has(key))
    .map(([key, value]) => `${key}=${show(value)}`);
  const message = show(entry.message ?? entry.msg ?? '');
  const text = [clock, name.padEnd(13), level.padEnd(5), message, ...fields].join(' ');
  return { level, text: escapeControls(text) };
}
