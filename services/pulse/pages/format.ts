import type { Target } from '@content-platform/contract';

const units = ['B', 'kB', 'MB', 'GB', 'TB'];

const digits = (value: number): string =>
  value >= 99.5 || Number.isInteger(value) ? value.toFixed(0) : value.toPrecision(2);

/** Formats bytes in powers of 1000: `12 MB`. */
export function formatBytes(value: number): string {
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, value)) / 3));
  return `${digits(value / 1_000 ** power)} ${units[power]}`;
}

/** Formats a duration: `12 ms`, `1.2 s`. */
export function formatSeconds(value: number): string {
  if (value >= 0.9995) return `${value.toFixed(value < 10 ? 1 : 0)} s`;
  const ms = value * 1_000;
  return `${ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms`;
}

/** Formats a ratio: `98.2 %`. A value between 0 and 1 is never rounded to 0 % or 100 %. */
export function formatRatio(value: number): string {
  const percent = value * 100;
  const rounded = value > 0 && value < 1 ? Math.min(99.9, Math.max(0.1, percent)) : percent;
  return `${rounded.toFixed(Number.isInteger(percent) ? 0 : 1)} %`;
}

const formats: Record<Target['unit'], (value: number) => string> = {
  seconds: formatSeconds,
  bytes: formatBytes,
  ratio: formatRatio,
  count: (value) => value.toLocaleString('en'),
};

export const format = (value: number, unit: Target['unit']): string => formats[unit](value);
