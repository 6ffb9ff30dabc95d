/** How skewed a sample's columns are, read out of the open mapping that the API gives. */
import type { Sample } from '../../api/types';

export interface ColumnSkew {
  column: string;
  distinct: number;
  /** The most frequent values with their shares, 0 to 1. */
  top: { value: string; share: number }[];
}

interface Given {
  distinct?: unknown;
  top?: unknown;
}

export function skewOf(sample: Pick<Sample, 'skew'>): ColumnSkew[] {
  return Object.entries(sample.skew as Record<string, Given>).map(([column, { distinct, top }]) => ({
    column,
    distinct: typeof distinct === 'number' ? distinct : 0,
    top: Array.isArray(top)
      ? (top as { value: unknown; share: number }[]).map(({ value, share }) => ({ value: String(value), share }))
      : [],
  }));
}
