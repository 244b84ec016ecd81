import { request } from 'node:http';
import { startHttpServer } from '../support/http-server.ts';
import { until } from '../support/wait.ts';

/**
 * Starts a round-robin load balancer before several gateways. It never retries a request or reuses a connection, so that
 * clients see every error of a gateway.
 */
export async function startBalancer() {
  let gateways: string[] = [];
  let turn = 0;
  const underWay = new Map<string, number>();
  const count = (gateway: string, change: number) =>
    underWay.set(gateway, (underWay.get(gateway) ?? 0) + change);

  const { origin, close } = await startHttpServer((incoming, outgoing) => {
    const gateway = gateways[(turn += 1) % gateways.length];
    if (!gateway) return void outgoing.destroy();
    count(gateway, 1);
    outgoing.once('close', () => count(gateway, -1));
    const { method = 'GET', url = '/', headers } = incoming;
    const options = { method, headers: { ...headers, connection: 'close' }, agent: false } as const;
    const forwarded = request(new URL(url, gateway), options, (answer) => {
      const { connection: _, ...passedOn } = answer.headers;
      outgoing.writeHead(answer.statusCode!, passedOn);
      answer.on('error', () => outgoing.destroy()).pipe(outgoing);
    });
    forwarded.on('error', () => outgoing.destroy());
    incoming.pipe(forwarded);
  });
  return {
    url: origin,
    /** Sends new requests to these gateways. Resolves once no request to another gateway is in progress. */
    async use(next: string[]): Promise<void> {
      gateways = next;
      await until('the other gateways have answered', () =>
        [...underWay].every(([gateway, open]) => open === 0 || next.includes(gateway)),
      );
    },
    stop: close,
  };
}
export type Balancer = Awaited<ReturnType<typeof startBalancer>>;
