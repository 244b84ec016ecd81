/** Returns the value that this share of `values` does not exceed: 0.5 is the median, 1 the maximum. NaN if empty. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = Float64Array.from(values).toSorted();
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  const sorted = Float64Array.from(values).toSorted();
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
}

/** Returns the median of the rounds' ratios with the lowest and the highest. */
export const ratioText = (ratios: readonly number[]): string =>
  `${median(ratios).toFixed(2)} × (rounds: ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`;

export const timesOf = (values: readonly number[]) => ({
  count: values.length,
  p50: percentile(values, 0.5),
  p99: percentile(values, 0.99),
  max: percentile(values, 1),
});
