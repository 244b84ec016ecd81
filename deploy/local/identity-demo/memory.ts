import type { Adapter, AdapterFactory, AdapterPayload } from 'oidc-provider';

/** In-memory storage of the provider. */
export function createMemory(): AdapterFactory {
  const known = new Map<string, AdapterPayload>();
  return (kind): Adapter => {
    const key = (id: string): string => `${kind} ${id}`;
    return {
      async upsert(id, payload, expiresIn) {
        known.set(key(id), payload);
        if (expiresIn) setTimeout(() => known.delete(key(id)), expiresIn * 1000).unref();
      },
      async find(id) {
        return known.get(key(id));
      },
      async findByUid(uid) {
        return [...known].find(([id, payload]) => id.startsWith(key('')) && payload.uid === uid)?.[1];
      },
      async findByUserCode() {
        return undefined; // the device flow is not supported
      },
      async consume(id) {
        const payload = known.get(key(id));
        if (payload) payload['consumed'] = Math.floor(Date.now() / 1000);
      },
      async destroy(id) {
        known.delete(key(id));
      },
      async revokeByGrantId(grantId) {
        for (const [id, payload] of known) if (payload.grantId === grantId) known.delete(id);
      },
    };
  };
}
