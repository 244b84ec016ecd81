import { createBreaker, type Logger, type ServiceFetch } from '@content-platform/chassis';

export type PushDevices = ReturnType<typeof createPushDevices>;

/** Maximum delay of a logout, in ms. */
const timeoutMs = 1_000;

/** Creates a client of the devices service at `url`; undefined: there is no such service. */
export function createPushDevices(url: string | undefined, fetchAsService: ServiceFetch, logger: Logger) {
  const breaker = createBreaker(logger, 'the devices service is unavailable; retrying once a second');

  async function ask(userId: number, token: string): Promise<void> {
    const response = await fetchAsService(`${url}/unregister`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ user_id: userId, token }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    await response.body?.cancel();
    if (response.status !== 204) throw new Error(`${url}/unregister answered ${response.status}`);
  }

  return {
    /** Removes the user's device with this token. Takes at most 1 s and never rejects. */
    async unregister(userId: number, token: string): Promise<void> {
      if (!url) return;
      if (breaker.allows()) {
        try {
          await ask(userId, token);
          return breaker.report(true);
        } catch (error) {
          breaker.report(false, error);
        }
      }
      logger.warn({ user_id: userId }, 'a device stays registered after its logout');
    },
  };
}
