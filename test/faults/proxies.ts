import { freePort, HOST } from '../../deploy/local/ports.ts';
import { freeRow } from '../support/ports.ts';
import { internalPortOffset, services } from '@content-platform/contract';
import { startProxy, type Proxy } from '../support/proxy.ts';

/** The proxies before a dependency; a service has two listeners and so two proxies. */
export interface Front {
  port: number;
  ways: Proxy[];
}

const address = (port: number) => new URL(`http://${HOST}:${port}`);

/** Creates proxies by name: for the launcher when it starts a process, and for a test that needs one earlier. */
export function createProxies() {
  const proxies = new Map<string, Front>();

  async function stand(name: string, to: number): Promise<Front> {
    const isService = services.some((service) => service.name === name);
    const offsets = isService ? [0, internalPortOffset] : [0];
    const port = isService ? await freeRow(1) : await freePort();
    const ways = offsets.map((offset) => startProxy(address(to + offset), port + offset));
    const front = { port, ways: await Promise.all(ways) };
    proxies.set(name, front);
    return front;
  }

  return {
    stand,
    of: (name: string): Front => proxies.get(name)!,
    ports: (): Record<string, number> =>
      Object.fromEntries([...proxies].map(([name, { port }]) => [name, port])),
    /** Redirects new connections to another port and closes the existing ones. */
    async redirect(name: string, to: number): Promise<void> {
      const { ways } = proxies.get(name)!;
      for (const [index, way] of ways.entries()) {
        way.redirect(address(to + index * internalPortOffset));
        way.cut();
        await way.repair();
      }
    },
    close: () => Promise.all([...proxies.values()].flatMap(({ ways }) => ways.map((way) => way.close()))),
  };
}
export type Proxies = ReturnType<typeof createProxies>;
