import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Alert {
  status: 'firing' | 'resolved';
  fingerprint: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
}

/** Receives what Alertmanager sends. */
export interface Webhook {
  url: string;
  /** The names of the alerts that began since `forget`, each with the summary of the first. */
  told(): Record<string, string>;
  /** Those that have not ended. */
  firing(): string[];
  /** From now on only what begins is told. */
  forget(): void;
  stop(): Promise<void>;
}

/** Listens on loopback, in this process. */
export async function startWebhook(): Promise<Webhook> {
  const firing = new Map<string, string>();
  let told: Record<string, string> = {};

  function take({ status, fingerprint, labels, annotations }: Alert): void {
    const name = labels['alertname'] ?? '';
    if (status === 'resolved') firing.delete(fingerprint);
    else if (!firing.has(fingerprint)) {
      firing.set(fingerprint, name);
      told[name] ??= annotations['summary'] ?? '';
    }
  }

  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    (JSON.parse(body) as { alerts: Alert[] }).alerts.forEach(take);
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    told: () => told,
    firing: () => [...firing.values()],
    forget: () => void (told = {}),
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
