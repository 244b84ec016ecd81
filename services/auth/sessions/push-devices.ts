import { createBreaker, currentContext, type Logger, type Span, traced } from '@content-platform/chassis';

export type PushDevices = ReturnType<typeof createPushDevices>;

/** A logout waits so long at most. */
const timeoutMs = 1_000;

/** The devices that people get push messages on: the devices service at `url`; undefined: there is no such service. */
export function createPushDevices(url: string | undefined, logger: Logger) {
  const breaker = createBreaker(logger, 'the devices service does not answer: it is asked once a second');

  async function ask(userId: number, token: string, span: Span | undefined): Promise<void> {
    const response = await fetch(`${url}/unregister`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'X-Request-Id': currentContext()?.requestId ?? '',
        ...span?.headers(),
      },
      body: JSON.stringify({ user_id: userId, token }),
      signal: AbortSignal.timeout(timeoutMs),
      redirect: 'error',
    });
    await response.body?.cancel();
    if (response.status !== 204) throw new Error(`${url}/unregister answered ${response.status}`);
  }

  return {
    /** The user's device with this token shall get no messages any more. Takes 1 s at most, and never rejects. */
    async unregister(userId: number, token: string): Promise<void> {
      if (!url) return;
      if (breaker.allows()) {
        try {
          await traced('POST devices', {}, (span) => ask(userId, token, span));
          return breaker.report(true);
        } catch (error) {
          breaker.report(false, error);
        }
      }
      logger.warn({ user_id: userId }, 'a device stays registered after its logout');
    },
  };
}
