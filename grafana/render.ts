// `npm run dashboards`: writes what Grafana is provisioned with.
import { writeFileSync } from 'node:fs';
import { render } from './dashboards.ts';

const folder = new URL('dashboards/', import.meta.url);
for (const [name, text] of render()) writeFileSync(new URL(name, folder), text);
