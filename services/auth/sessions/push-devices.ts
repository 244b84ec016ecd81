import { createBreaker, currentContext, type Logger, type Span, traced } from '@content-platform/chassis';

export type PushDevices = ReturnType<typeof createPushDevices>;

/** Maximum delay of a logout, in ms. */
const timeoutMs = 1_000;

/**
 * Creates a client of the devices service at `url`, which stores push tokens; undefined: there is no such service.
 * `issueToken` makes a token for internal listeners.
 */
export function createPushDevices(url: string | undefined, issueToken: () => string, logger: Logger) {
  const breaker = createBreaker(logger, 'the devices service is unavailable; retrying once a second');

  async function ask(userId: number, token: string, span: Span | undefined): Promise<void> {
    const response = await fetch(`${url}/unregister`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${issueToken()}`,
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
    /**
     * Removes the user's device with this token, so that it gets no more messages. Takes at most 1 s and never rejects.
     */
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
