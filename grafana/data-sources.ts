/** The data sources as `provisioning/datasources` names them. */
export const prometheus = { type: 'prometheus', uid: 'prometheus' };
export const logs = { type: 'grafana-postgresql-datasource', uid: 'logs' };
export const jaeger = { type: 'jaeger', uid: 'jaeger' };

/** Where Grafana shows the trace whose id is in the cell that was clicked. */
export function traceAddress(): string {
  const panes = {
    trace: {
      datasource: jaeger.uid,
      queries: [{ refId: 'A', datasource: jaeger, query: '<id>' }],
      range: { from: 'now-1h', to: 'now' },
    },
  };
  // Grafana puts the id in by itself, which it does not where the braces are escaped.
  const escaped = encodeURIComponent(JSON.stringify(panes)).replace('%3Cid%3E', '${__value.raw}');
  return `/explore?schemaVersion=1&panes=${escaped}`;
}
