import { request } from 'node:http';
import { startHttpServer } from '../support/http-server.ts';
import { until } from '../support/wait.ts';

/** What stands before several gateways: requests go to each of them in turn. */
export interface Balancer {
  readonly url: string;
  /** From now on requests go to these; resolves when none is under way to another. */
  use(gateways: string[]): Promise<void>;
  stop(): void;
}

/** Nothing is sent twice, and no connection is used twice: what goes wrong at a gateway is seen by who asked. */
export async function startBalancer(): Promise<Balancer> {
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
    async use(next) {
      gateways = next;
      await until('the other gateways have answered', () =>
        [...underWay].every(([gateway, open]) => open === 0 || next.includes(gateway)),
      );
    },
    stop: close,
  };
}
