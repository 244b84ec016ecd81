/**
 * A trace is also sent when this process's part of it took longer than this: a request may exceed the slow limit of
 * 500 ms at the gateway only, and its services cannot know that.
 */
const longMs = 200;
/** Spans held of one request or event; further ones are dropped. */
const maxSpans = 1_000;

/**
 * This process's part of a trace. It begins with a request or an event; when that ends, either all of its spans are sent
 * or none. Until then spans are only recorded, which is cheap.
 */
export interface LocalTrace<Span> {
  readonly id: string;
  /** Decided where the trace began, for all processes. */
  readonly sampled: boolean;
  /** Difference between the process's monotonic clock and Unix time, in ms. */
  readonly epochMs: number;
  /** Has the trace sent in any case. */
  want(): void;
  /** Whether the trace is certain to be sent. */
  isWanted(): boolean;
  /** Records a client span that has ended. After the end of the trace the span is sent if the trace was. */
  add(span: Span): void;
  /** Ends the trace with the span of the request or event itself. */
  end(span: Span): void;
}

/** Begins this process's part of the trace `id`. `send` gets the spans of a trace that is slow, failed or sampled. */
export function createLocalTrace<Span extends { failed: boolean }>(
  id: string,
  sampled: boolean,
  send: (span: Span) => void,
): LocalTrace<Span> {
  const beganAt = performance.now();
  let wanted = sampled;
  let ended = false;
  let spans: Span[] = [];
  const isLong = () => performance.now() - beganAt > longMs;

  return {
    id,
    sampled,
    epochMs: Date.now() - beganAt,
    want: () => void (wanted = true),
    isWanted: () => wanted || (!ended && isLong()),
    add(span) {
      if (ended && wanted) send(span);
      if (!ended && spans.length < maxSpans) spans.push(span);
    },
    end(span) {
      wanted ||= span.failed || isLong();
      ended = true;
      if (wanted) [...spans, span].forEach(send);
      spans = [];
    },
  };
}
