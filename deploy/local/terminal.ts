import { environmentWith } from './config.ts';
import { Stopped } from './problem.ts';

/** Sets the text behind a step's name: its progress, and finally its result. */
export type Report = (detail: string) => void;

export type Terminal = ReturnType<typeof createTerminal>;

interface Step {
  name: string;
  detail: string;
  start: number;
  shown: number;
}

const quietMs = 2_000;
const lineEveryMs = 5_000;

export const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

/** Shows the launcher's steps: in the last line of a terminal with escapes, else a line every 5 s for a long step. */
export function createTerminal(out: NodeJS.WriteStream = process.stdout) {
  // If the reader of the output ends (`npm start | head`), the stack keeps running.
  out.on('error', () => {});
  const running = new Set<Step>();
  let timer: NodeJS.Timeout | undefined;

  const isLive = out.isTTY && environmentWith({})['TERM'] !== 'dumb';
  const clear = (): void => void (isLive && out.write('\r\u001B[K'));
  const live = (step: Step): string =>
    `${step.name} ${Math.floor((Date.now() - step.start) / 1000)} s${step.detail && ` ${step.detail}`}`;
  const draw = (): void => {
    const long = [...running].filter((step) => Date.now() - step.start > quietMs);
    if (isLive) {
      const text = long.map(live).join(' · ');
      out.write(`\r\u001B[K${text && `… ${text}`.slice(0, (out.columns || 80) - 1)}`);
      return;
    }
    for (const step of long) {
      if (Date.now() - step.shown < lineEveryMs) continue;
      step.shown = Date.now();
      out.write(`… ${live(step)}\n`);
    }
  };
  const line = (text: string): void => {
    clear();
    out.write(`${text}\n`);
    if (running.size > 0) draw();
  };

  return {
    line,
    /**
     * Does the work, and prints one line with its time at the end; meanwhile it shows progress. Once `signal` aborts, it
     * prints no line, and a failure of the work has the signal's reason.
     */
    step: async <T>(name: string, work: (report: Report) => Promise<T>, signal?: AbortSignal): Promise<T> => {
      const now = Date.now();
      const step: Step = { name, detail: '', start: now, shown: now };
      running.add(step);
      timer ??= setInterval(draw, 1_000);
      const end = (mark: string): void => {
        running.delete(step);
        if (running.size === 0) timer = void clearInterval(timer);
        const took = seconds(Date.now() - step.start).padStart(7);
        if (mark) line(`${mark} ${name.padEnd(16)} ${took}  ${step.detail}`.trimEnd());
      };
      try {
        const result = await work((detail) => (step.detail = detail));
        end('✓');
        return result;
      } catch (error) {
        const reason: unknown = signal?.aborted ? signal.reason : error;
        end(signal?.aborted || error instanceof Stopped ? '' : '✗');
        throw reason;
      }
    },
  };
}
