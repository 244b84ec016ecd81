/** How well one number tells two kinds apart: 0.5 not at all, 1 always. */
export interface Separation {
  /** Area under the ROC curve, whichever way round it is 0.5 or more. */
  area: number;
  /** Half the width of its 95 % confidence interval. */
  margin: number;
}

/** How many of the sorted values are below `limit`, or with `orEqual` not above it. */
function countBelow(sorted: readonly number[], limit: number, orEqual: boolean): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < limit || (orEqual && sorted[middle] === limit)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** For each value the part of `others` that is below it; ties count half. */
function placements(values: readonly number[], others: readonly number[]): number[] {
  const sorted = others.toSorted((a, b) => a - b);
  return values.map(
    (value) => (countBelow(sorted, value, false) + countBelow(sorted, value, true)) / 2 / sorted.length,
  );
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

function variance(values: readonly number[]): number {
  const middle = mean(values);
  return values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1);
}

/** Mann-Whitney, with the variance of DeLong, DeLong and Clarke-Pearson (1988). At least two values each. */
export function separation(one: readonly number[], other: readonly number[]): Separation {
  const [above, below] = [placements(one, other), placements(other, one)];
  const area = mean(above);
  const error = Math.sqrt(variance(above) / one.length + variance(below) / other.length);
  return { area: Math.max(area, 1 - area), margin: 1.96 * error };
}
