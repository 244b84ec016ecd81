import type { Builder } from '@grafana/grafana-foundation-sdk/cog';
import {
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  type DashboardLink,
  type Panel,
  type VariableModel,
} from '@grafana/grafana-foundation-sdk/dashboard';

const tag = 'content-platform';

interface PanelBuilder extends Builder<Panel> {
  id(id: number): this;
}

export interface Board {
  /** ID of the dashboard: its path in Grafana is `/d/<uid>`, its file `dashboards/<uid>.json`. */
  uid: string;
  title: string;
  description: string;
  variables?: Builder<VariableModel>[];
  /** Panels in reading order; a row wraps when it is full. */
  panels: PanelBuilder[];
}

/** Links to the other dashboards above the panels. `placement` is removed, because it would move them into a menu. */
function others(): DashboardLink {
  const link = new DashboardLinkBuilder('Dashboards').type(DashboardLinkType.Dashboards).tags([tag]);
  const { placement: _placement, ...rest } = link.keepTime(true).build();
  return rest;
}

/** Creates a dashboard of the platform: read-only, because it is generated, with links to the others. */
export function board({ uid, title, description, variables = [], panels }: Board): DashboardBuilder {
  const dashboard = new DashboardBuilder(title)
    .uid(uid)
    .description(description)
    .tags([tag])
    .readonly()
    .timezone('browser')
    .time({ from: 'now-1h', to: 'now' })
    .refresh('30s')
    .tooltip(DashboardCursorSync.Crosshair)
    .variables(variables)
    .link({ build: others });
  // Links to panels contain this id.
  for (const [index, panel] of panels.entries()) dashboard.withPanel(panel.id(index + 1));
  return dashboard;
}
