import http from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { callbackify } from 'node:util';
import { connect } from './connect.ts';
import type { Timeouts } from './timeouts.ts';

/**
 * Makes connections for what goes on as it comes: one for each request, for a body that broke off would spoil the next.
 * The service is not told so: it would close one as soon as it has replied, though the body is still on its way, and the
 * reply would be lost.
 */
export function createUpstreamAgent(url: URL, timeouts: Timeouts): http.Agent {
  const options = { keepAlive: true, maxFreeSockets: 0 };
  const agent = url.protocol === 'https:' ? new https.Agent(options) : new http.Agent(options);
  const open = agent.createConnection.bind(agent);
  const connectWithCallback = callbackify((target: http.ClientRequestArgs) =>
    connect(url, timeouts, () => open(target) as Socket),
  );
  agent.createConnection = (target, done) => {
    connectWithCallback(target, done!);
    return undefined;
  };
  return agent;
}
