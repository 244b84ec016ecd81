import { stackFilePath } from './config.ts';
import { Problem } from './problem.ts';
import { readJson } from './state.ts';

/** Contents of stack.json: the URLs of a running stack, with the database owner's credentials. */
export interface Stack {
  gateway: string;
  postgres: string;
  logs: string;
  redis: string;
  /** Kafka brokers; null without Kafka. */
  kafka: string | null;
  services: Record<string, { public: string; internal: string; pid: number }>;
}

/** File beside stack.json with the targets of deploy/prometheus/prometheus.yml: each service's internal listener. */
export const PROMETHEUS_TARGETS = 'prometheus-targets.json';
export const prometheusTargets = ({ services }: Stack) =>
  Object.entries(services).map(([service, { internal }]) => ({
    targets: [new URL(internal).host],
    labels: { service },
  }));

/** Returns the URLs of the running stack. @throws Problem if no stack is running */
export function readStack(file = stackFilePath()): Stack {
  const stack = readJson<Stack>(file);
  if (!stack) throw new Problem(`No stack is running (there is no ${file}): run npm start.`);
  return stack;
}
