import { json } from 'node:stream/consumers';
import { startHttpServer } from './http-server.ts';

interface Alert {
  status: 'firing' | 'resolved';
  fingerprint: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
}

/** Starts a receiver of Alertmanager's notifications on loopback, in this process. */
export async function startWebhook() {
  const firing = new Map<string, string>();
  let summaries: Record<string, string> = {};

  function take({ status, fingerprint, labels, annotations }: Alert): void {
    const name = labels['alertname'] ?? '';
    if (status === 'resolved') firing.delete(fingerprint);
    else if (!firing.has(fingerprint)) {
      firing.set(fingerprint, name);
      summaries[name] ??= annotations['summary'] ?? '';
    }
  }

  const { origin, close } = await startHttpServer(async (request, response) => {
    ((await json(request)) as { alerts: Alert[] }).alerts.forEach(take);
    response.end();
  });
  return {
    url: `${origin}/`,
    /** Alerts that started since `reset`, by name, each with the summary of the first notification. */
    notified: () => summaries,
    firing: () => [...firing.values()],
    reset: () => void (summaries = {}),
    stop: close,
  };
}
