import { freePort, HOST } from '../../deploy/local/ports.ts';
import { freeRow } from '../support/ports.ts';
import { internalPortOffset, services } from '@content-platform/contract';
import { startProxy, type Proxy } from '../support/proxy.ts';

/** The proxies before a dependency; a service has two listeners and so two proxies. */
export interface ProxyGroup {
  port: number;
  proxies: Proxy[];
}

const address = (port: number) => new URL(`http://${HOST}:${port}`);

/** Creates proxies by name: for the launcher when it starts a process, and for a test that needs one earlier. */
export function createProxies() {
  const groups = new Map<string, ProxyGroup>();

  async function start(name: string, to: number): Promise<ProxyGroup> {
    const isService = services.some((service) => service.name === name);
    const offsets = isService ? [0, internalPortOffset] : [0];
    const port = isService ? await freeRow(1) : await freePort();
    const starting = offsets.map((offset) => startProxy(address(to + offset), port + offset));
    const group = { port, proxies: await Promise.all(starting) };
    groups.set(name, group);
    return group;
  }

  return {
    start,
    of: (name: string): ProxyGroup => groups.get(name)!,
    ports: (): Record<string, number> =>
      Object.fromEntries([...groups].map(([name, { port }]) => [name, port])),
    /** Redirects new connections to another port and closes the existing ones. */
    async redirect(name: string, to: number): Promise<void> {
      const { proxies } = groups.get(name)!;
      for (const [index, proxy] of proxies.entries()) {
        proxy.redirect(address(to + index * internalPortOffset));
        proxy.cut();
        await proxy.repair();
      }
    },
    async close(): Promise<void> {
      await Promise.all([...groups.values()].flatMap(({ proxies }) => proxies.map((proxy) => proxy.close())));
    },
  };
}
export type Proxies = ReturnType<typeof createProxies>;
