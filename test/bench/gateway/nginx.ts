import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onPath, runCommand } from '../../../deploy/local/run-command.ts';
import { start } from './processes.ts';

/** Path of nginx; undefined if it is not on the PATH. */
export const nginx = onPath('nginx');

export async function nginxVersion(): Promise<string> {
  const { output } = await runCommand(nginx!, ['-v']);
  return /nginx\/(\S+)/.exec(output)![1]!;
}

const plain = 'location / { proxy_pass http://upstream; }';

/** Allowlist, rate limit, request ID and a log line with the duration. nginx asks an authenticator over HTTP. */
const duties = (burst: number) => `
  limit_req zone=callers burst=${burst} nodelay;
  access_log /dev/null each;
  location ~ ^/api/content/[^/]+/[^/]+$ {
    limit_except GET { deny all; }
    auth_request /authenticate;
    proxy_set_header X-Request-Id $id;
    add_header X-Request-Id $id;
    proxy_pass http://upstream;
  }
  location = /authenticate {
    internal;
    access_log off;
    proxy_pass_request_body off;
    proxy_set_header Content-Length "";
    proxy_pass http://authenticator;
  }
  location / { return 404; }`;

const config = (folder: string, port: number, upstream: string, authPort?: number, limit?: number) => `
daemon off;
master_process off;
pid ${folder}/pid;
error_log ${folder}/errors.log;
events { worker_connections 20000; }
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((each) => `${each}_temp_path ${folder}/${each};`).join(' ')}
  keepalive_requests 1000000000;
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  limit_req_zone ${limit === undefined ? '$http_authorization' : '$server_port'} zone=callers:10m rate=${limit ?? 100_000}r/s;
  map $http_x_request_id $id { default $request_id; "~^[A-Za-z0-9._-]{1,128}$" $http_x_request_id; }
  log_format each escape=json '{"time":"$time_iso8601","request_id":"$id","method":"$request_method","path":"$uri","status":$status,"seconds":$request_time}';
  upstream upstream { server ${new URL(upstream).host}; keepalive 64; keepalive_requests 1000000000; }
  ${authPort === undefined ? '' : `upstream authenticator { server 127.0.0.1:${authPort}; keepalive 64; keepalive_requests 1000000000; }`}
  server {
    listen 127.0.0.1:${port};
    ${authPort === undefined ? plain : duties(limit === undefined ? 10_000 : Math.round(limit * 0.4))}
  }
}
`;

/**
 * Starts nginx as one process, so that nothing is left when it is killed. With `authPort` it has the gateway's duties;
 * otherwise it only forwards.
 */
export function startNginx(root: string, port: number, upstream: string, authPort?: number, limit?: number) {
  const folder = join(root, `nginx-${port}`);
  mkdirSync(folder);
  const file = join(folder, 'nginx.conf');
  writeFileSync(file, config(folder, port, upstream, authPort, limit));
  return start(nginx!, ['-c', file, '-p', folder, '-e', join(folder, 'errors.log')]);
}
