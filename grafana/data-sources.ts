/** The data sources as `provisioning/datasources` names them. */
export const prometheus = { type: 'prometheus', uid: 'prometheus' };
export const logs = { type: 'grafana-postgresql-datasource', uid: 'logs' };
const jaeger = { type: 'jaeger', uid: 'jaeger' };

/** Returns the path of Grafana's page for the trace whose id is in the clicked cell. */
export function traceAddress(): string {
  const panes = {
    trace: {
      datasource: jaeger.uid,
      queries: [{ refId: 'A', datasource: jaeger, query: '<id>' }],
      range: { from: 'now-1h', to: 'now' },
    },
  };
  // Grafana replaces the variable only if its braces are not escaped.
  const escaped = encodeURIComponent(JSON.stringify(panes)).replace('%3Cid%3E', '${__value.raw}');
  return `/explore?schemaVersion=1&panes=${escaped}`;
}
