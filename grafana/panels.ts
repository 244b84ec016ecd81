import { PanelBuilder as BarPanel } from '@grafana/grafana-foundation-sdk/bargauge';
import {
  BarGaugeDisplayMode,
  BigValueColorMode,
  BigValueTextMode,
  GraphThresholdsStyleConfigBuilder,
  GraphThresholdsStyleMode,
  ReduceDataOptionsBuilder,
  VizLegendOptionsBuilder,
  VizOrientation,
} from '@grafana/grafana-foundation-sdk/common';
import { ThresholdsConfigBuilder } from '@grafana/grafana-foundation-sdk/dashboard';
import { PanelBuilder as StatPanel } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as TablePanel } from '@grafana/grafana-foundation-sdk/table';
import { PanelBuilder as SeriesPanel } from '@grafana/grafana-foundation-sdk/timeseries';
import { logs, prometheus, promQueries, sqlQuery, traceAddress, type Queries } from './queries.ts';

/** Goal in the panel's unit: below a limit, or from a minimum. */
type Goal = { below: number } | { from: number };

/** The texts and the unit of a panel. */
interface PanelTexts {
  /** Title, phrased as a question. */
  title: string;
  /** The normal value, and the meaning of a deviation. */
  description: string;
  /** Grafana's ID of the unit. Default: a plain number. */
  unit?: string;
  goal?: Goal;
}

interface Asking extends PanelTexts {
  queries: Queries;
}

/** A third of the width of a dashboard, which is 24. */
const third = 8;
const height = 8;

const colours = (...steps: [from: number | null, colour: string][]) =>
  new ThresholdsConfigBuilder().steps(steps.map(([value, color]) => ({ value, color })));

/** `unknown`: the colour of a tile without a value, to which Grafana gives the first colour. */
function thresholds(goal: Goal | undefined, unknown?: string): ThresholdsConfigBuilder {
  if (!goal) return colours([null, 'green']);
  const [limit, low, high] = 'below' in goal ? [goal.below, 'green', 'red'] : [goal.from, 'red', 'green'];
  if (unknown === undefined) return colours([null, low], [limit, high]);
  return colours([null, unknown], [0, low], [limit, high]);
}

/** The methods that all kinds of panels share. */
interface Panel {
  title(title: string): this;
  description(description: string): this;
  unit(unit: string): this;
  datasource(source: typeof prometheus): this;
}

const withTexts = <P extends Panel>(
  panel: P,
  { title, description, unit = 'short' }: PanelTexts,
  source = prometheus,
): P => panel.title(title).description(description).datasource(source).unit(unit);

const newest = () => new ReduceDataOptionsBuilder().calcs(['lastNotNull']);

/** A line chart over time. A goal is a dashed line. */
export function series(asking: Asking): SeriesPanel {
  const style = asking.goal ? GraphThresholdsStyleMode.Dashed : GraphThresholdsStyleMode.Off;
  return withTexts(new SeriesPanel(), asking)
    .min(0)
    .thresholds(thresholds(asking.goal))
    .thresholdsStyle(new GraphThresholdsStyleConfigBuilder().mode(style))
    .legend(new VizLegendOptionsBuilder().showLegend(true))
    .targets(promQueries(asking.queries, 'range'))
    .span(third)
    .height(height);
}

const tile = (asking: Asking & { goal: Goal }): StatPanel =>
  withTexts(new StatPanel(), asking)
    .thresholds(thresholds(asking.goal, 'gray'))
    .colorMode(BigValueColorMode.Background)
    .reduceOptions(newest());

/** A tile that is green or red by its goal. A range query would show the last value of a series that has ended. */
export const statusTile = (asking: Asking & { goal: Goal }): StatPanel =>
  tile(asking).targets(promQueries(asking.queries, 'instant')).span(4).height(6);

/** A tile for each query, with its name, in the full width. */
export const statusTiles = (asking: Asking & { goal: Goal }): StatPanel =>
  tile(asking)
    .textMode(BigValueTextMode.ValueAndName)
    .targets(promQueries(asking.queries, 'instant'))
    .span(24)
    .height(height);

/** The ten largest now, as bars. */
export function ranking(asking: Asking): BarPanel {
  const largest = Object.fromEntries(
    Object.entries(asking.queries).map(([legend, expr]) => [legend, `topk(10, ${expr})`]),
  );
  return withTexts(new BarPanel(), asking)
    .min(0)
    .thresholds(thresholds(asking.goal))
    .orientation(VizOrientation.Horizontal)
    .displayMode(BarGaugeDisplayMode.Basic)
    .reduceOptions(newest())
    .targets(promQueries(largest, 'instant'))
    .span(third)
    .height(height);
}

/** Rows of the logs database: columns whose name ends in `ms` are milliseconds, `trace` leads to the trace. */
export function rows({ query, ...panel }: PanelTexts & { query: string }): TablePanel {
  const links = [{ title: 'Show the trace', url: traceAddress() }];
  return withTexts(new TablePanel(), panel, logs)
    .overrideByRegexp('/ms$/', [{ id: 'unit', value: 'ms' }])
    .overrideByName('trace', [{ id: 'links', value: links }])
    .withTarget(sqlQuery(query))
    .span(24)
    .height(10);
}
