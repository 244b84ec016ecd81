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
import { cache } from './cache.ts';
import { gateway } from './gateway.ts';
import { media } from './media.ts';
import { runbooks } from './runbooks.ts';
import { serviceBoard } from './service.ts';
import { slowLog } from './slow-log.ts';
import { stores } from './stores.ts';
import { targets } from './targets.ts';

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
function board({ uid, title, description, variables = [], panels }: Board): DashboardBuilder {
  const dashboard = new DashboardBuilder(title)
    .uid(uid)
    .description(description)
    .tags([tag])
    .readonly()
    .time({ from: 'now-1h', to: 'now' })
    .refresh('30s')
    .tooltip(DashboardCursorSync.Crosshair)
    .variables(variables)
    .link({ build: others });
  // Links to panels contain this id.
  for (const [index, panel] of panels.entries()) dashboard.withPanel(panel.id(index + 1));
  return dashboard;
}

const boards = [targets, gateway, cache, serviceBoard, media, stores, slowLog, runbooks];

export const dashboards = () => boards.map((one) => board(one).build());
