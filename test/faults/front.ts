import { freePort, freeRow, HOST, INTERNAL_OFFSET } from '../../deploy/local/ports.ts';
import { SERVICES } from '../../deploy/local/services.ts';
import { startProxy, type Proxy } from '../support/proxy.ts';

/** What stands before a dependency; a service has two listeners, and so two ways to it. */
export interface Front {
  port: number;
  ways: Proxy[];
}

const address = (port: number) => new URL(`http://${HOST}:${port}`);

/** Fronts of everything, by name, as the launcher asks for them and as a test has them before there is anything. */
export function createFronts() {
  const fronts = new Map<string, Front>();

  async function stand(name: string, to: number): Promise<Front> {
    const isService = SERVICES.some((service) => service.name === name);
    const offsets = isService ? [0, INTERNAL_OFFSET] : [0];
    const port = isService ? await freeRow(1) : await freePort();
    const ways = offsets.map((offset) => startProxy(address(to + offset), port + offset));
    const front = { port, ways: await Promise.all(ways) };
    fronts.set(name, front);
    return front;
  }

  return {
    stand,
    of: (name: string): Front => fronts.get(name)!,
    ports: (): Record<string, number> =>
      Object.fromEntries([...fronts].map(([name, { port }]) => [name, port])),
    /** New connections go there, and the old ones end. */
    async lead(name: string, to: number): Promise<void> {
      const { ways } = fronts.get(name)!;
      for (const [index, way] of ways.entries()) {
        way.lead(address(to + index * INTERNAL_OFFSET));
        way.cut();
        await way.mend();
      }
    },
    close: () => Promise.all([...fronts.values()].flatMap(({ ways }) => ways.map((way) => way.close()))),
  };
}
export type Fronts = ReturnType<typeof createFronts>;
