import { PanelBuilder as BarPanel } from '@grafana/grafana-foundation-sdk/bargauge';
import {
  BarGaugeDisplayMode,
  BigValueColorMode,
  BigValueTextMode,
  GraphThresholdsStyleConfigBuilder,
  GraphThresholdsStyleMode,
  LegendDisplayMode,
  LegendPlacement,
  ReduceDataOptionsBuilder,
  VizLegendOptionsBuilder,
  VizOrientation,
} from '@grafana/grafana-foundation-sdk/common';
import { ThresholdsConfigBuilder, ThresholdsMode } from '@grafana/grafana-foundation-sdk/dashboard';
import { PanelBuilder as StatPanel } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as TablePanel } from '@grafana/grafana-foundation-sdk/table';
import { PanelBuilder as SeriesPanel } from '@grafana/grafana-foundation-sdk/timeseries';
import { logs, prometheus, traceAddress } from './data-sources.ts';
import { now, over, sql, type Query } from './queries.ts';

/** What is good: less than the limit, or at least as much. In the panel's unit. */
export type Goal = { below: number } | { from: number };

/** What each panel has to say of itself. */
export interface About {
  /** A question, or a quantity. */
  title: string;
  /** What is normal, and what it means when it is not. */
  description: string;
  /** Grafana's id of the unit. */
  unit: string;
  goal?: Goal;
}

interface Asking extends About {
  queries: Query[];
}

/** The dashboard is 24 wide. */
const third = 8;
const height = 8;

function thresholds(goal: Goal | undefined): ThresholdsConfigBuilder {
  const [good, bad] = ['green', 'red'];
  const steps =
    goal === undefined
      ? [{ value: null, color: good }]
      : 'below' in goal
        ? [
            { value: null, color: good },
            { value: goal.below, color: bad },
          ]
        : [
            { value: null, color: bad },
            { value: goal.from, color: good },
          ];
  return new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(steps);
}

const newest = () => new ReduceDataOptionsBuilder().calcs(['lastNotNull']);

/** Lines over time; a goal is a dashed one. */
export function series({ title, description, unit, goal, queries }: Asking): SeriesPanel {
  const style = goal ? GraphThresholdsStyleMode.Dashed : GraphThresholdsStyleMode.Off;
  return new SeriesPanel()
    .title(title)
    .description(description)
    .datasource(prometheus)
    .unit(unit)
    .min(0)
    .thresholds(thresholds(goal))
    .thresholdsStyle(new GraphThresholdsStyleConfigBuilder().mode(style))
    .legend(
      new VizLegendOptionsBuilder()
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom)
        .showLegend(true),
    )
    .targets(queries.map(over))
    .span(third)
    .height(height);
}

/** A traffic light: green or red by its goal, with the last hours behind it. */
export function light({ title, description, unit, goal, queries }: Asking & { goal: Goal }): StatPanel {
  return new StatPanel()
    .title(title)
    .description(description)
    .datasource(prometheus)
    .unit(unit)
    .thresholds(thresholds(goal))
    .colorMode(BigValueColorMode.Background)
    .reduceOptions(newest())
    .targets(queries.map(over))
    .span(4)
    .height(6);
}

/** Many small lights, each with its name. */
export function lights({ title, description, unit, goal, queries }: Asking & { goal: Goal }): StatPanel {
  return new StatPanel()
    .title(title)
    .description(description)
    .datasource(prometheus)
    .unit(unit)
    .thresholds(thresholds(goal))
    .colorMode(BigValueColorMode.Background)
    .textMode(BigValueTextMode.ValueAndName)
    .reduceOptions(newest())
    .targets(queries.map(now))
    .span(third)
    .height(height);
}

/** What is largest now, as bars. */
export function ranking({ title, description, unit, goal, queries }: Asking): BarPanel {
  return new BarPanel()
    .title(title)
    .description(description)
    .datasource(prometheus)
    .unit(unit)
    .min(0)
    .thresholds(thresholds(goal))
    .orientation(VizOrientation.Horizontal)
    .displayMode(BarGaugeDisplayMode.Basic)
    .reduceOptions(newest())
    .targets(queries.map(now))
    .span(third)
    .height(height);
}

/** Rows of the logs database: columns whose name ends in `ms` are milliseconds, `trace` leads to the trace. */
export function rows({ title, description, unit, query }: About & { query: string }): TablePanel {
  const links = [{ title: 'Show the trace', url: traceAddress() }];
  return new TablePanel()
    .title(title)
    .description(description)
    .datasource(logs)
    .unit(unit)
    .overrideByRegexp('/ms$/', [{ id: 'unit', value: 'ms' }])
    .overrideByName('trace', [{ id: 'links', value: links }])
    .withTarget(sql(query))
    .span(24)
    .height(10);
}
