import type { RecordedSpan } from './span.ts';

/**
 * The services' share of a request that is slow in the end (500 ms) may be less than that: it is to be there, too. What
 * decides is what this process has seen; it cannot ask the others.
 */
const longMs = 200;
/** More than this many spans of one request or event are not held. */
const spanLimit = 1_000;

/**
 * This process's part of a trace: it begins with a request or an event, and when that has ended, all of it is sent or
 * none. Until then a span is only noted, which costs next to nothing.
 */
export class LocalTrace {
  readonly id: string;
  /** Decided where the trace began, for all processes that it comes through. */
  readonly sampled: boolean;
  /** From the process's clock, in ms, to that of the world. */
  readonly epoch = Date.now() - performance.now();
  readonly #beganAt = performance.now();
  readonly #send: (span: RecordedSpan) => void;
  #wanted: boolean;
  #ended = false;
  #spans: RecordedSpan[] = [];

  constructor(id: string, sampled: boolean, send: (span: RecordedSpan) => void) {
    this.id = id;
    this.sampled = sampled;
    this.#wanted = sampled;
    this.#send = send;
  }

  /** It is sent, whatever happens. */
  want(): void {
    this.#wanted = true;
  }

  /** Whether it is certain that it is sent. */
  get wanted(): boolean {
    return this.#wanted || (!this.#ended && this.#isLong());
  }

  /** Something that was asked of others has ended; what ends after the request itself shares its fate. */
  add(span: RecordedSpan): void {
    if (this.#ended) {
      if (this.#wanted) this.#send(span);
    } else if (this.#spans.length < spanLimit) {
      this.#spans.push(span);
    }
  }

  /** The request or event itself, `span`, has ended. */
  end(span: RecordedSpan): void {
    this.#wanted ||= span.failed || this.#isLong();
    this.#ended = true;
    if (this.#wanted) [...this.#spans, span].forEach(this.#send);
    this.#spans = [];
  }

  #isLong(): boolean {
    return performance.now() - this.#beganAt > longMs;
  }
}
