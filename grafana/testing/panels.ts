import { dashboards } from '../dashboards.ts';

/** The part of a panel's JSON that tests read. */
interface RenderedPanel {
  dashboard: string;
  id: number;
  type: string;
  title: string;
  description?: string;
  datasource?: { type: string; uid: string };
  fieldConfig?: {
    defaults: {
      unit?: string;
      thresholds?: { steps: { value: number | null; color: string }[] };
      custom?: { thresholdsStyle?: { mode: string } };
    };
    overrides: { matcher: { options: string }; properties: { id: string; value: unknown }[] }[];
  };
  targets?: { datasource: { uid: string }; expr?: string; rawSql?: string; exemplar?: boolean }[];
}

/** Every panel, with the uid of its dashboard. */
export function allPanels(): RenderedPanel[] {
  return dashboards().flatMap(({ uid, panels = [] }) => {
    const plain = JSON.parse(JSON.stringify(panels)) as RenderedPanel[];
    return plain.map((panel) => ({ ...panel, dashboard: uid! }));
  });
}

/** Panels that show data; the others show text. */
export const dataPanels = () => allPanels().filter(({ type }) => type !== 'text');
