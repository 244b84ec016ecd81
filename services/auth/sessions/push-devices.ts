import { createPost, type Logger, type ServiceFetch } from '@content-platform/chassis';

export type PushDevices = ReturnType<typeof createPushDevices>;

/** Creates a client of the devices service at `url`; undefined: there is no such service. */
export function createPushDevices(url: string | undefined, fetchAsService: ServiceFetch, logger: Logger) {
  const message = 'the devices service is unavailable; it deletes the push tokens of logouts later';
  const post = createPost(`${url}/unregister`, fetchAsService, logger, message);
  return {
    /** Removes the user's device with this token. Takes at most 1 s and never rejects. */
    async unregister(userId: number, token: string): Promise<void> {
      if (!url || (await post({ user_id: userId, token }))) return;
      logger.warn({ user_id: userId }, 'push token not deleted at logout; it is deleted later');
    },
  };
}
