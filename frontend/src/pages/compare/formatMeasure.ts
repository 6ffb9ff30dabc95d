/** Predicted figures for people. */
import { formatBytes, formatRate, formatShort } from '../../format';
import type { MeasureKey } from './comparison';

export function formatMeasure(key: MeasureKey, value: number | null): string {
  if (value === null) return '–';
  switch (key) {
    case 'memoryBytes':
      return formatBytes(value);
    case 'replication':
      return value.toFixed(2);
    case 'comparisonsPerS':
      return formatRate(value);
    case 'bytesPerS':
      return `${formatBytes(value)}/s`;
  }
}

/** A round value at the side of a chart. */
export const formatTick = (key: MeasureKey, value: number): string =>
  value === 0 ? '0' : key === 'replication' ? formatShort(value) : formatMeasure(key, value);

export const isBytes = (key: MeasureKey): boolean => key === 'memoryBytes' || key === 'bytesPerS';
