import { stackFilePath } from './config.ts';
import { Problem } from './problem.ts';
import { readJson } from './state.ts';

/** What stack.json says of a running stack: every address, with the database owner's credentials. */
export interface Stack {
  gateway: string;
  postgres: string;
  logs: string;
  redis: string;
  /** Brokers; null when the stack runs without Kafka. */
  kafka: string | null;
  services: Record<string, { public: string; internal: string; pid: number }>;
}

/** The running stack's addresses. @throws Problem when none is running */
export function readStack(file = stackFilePath()): Stack {
  const stack = readJson<Stack>(file);
  if (!stack) throw new Problem(`No stack is running (there is no ${file}): npm start`);
  return stack;
}
