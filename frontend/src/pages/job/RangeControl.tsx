/** How far back charts go. */
import { SegmentedControl } from '@mantine/core';

export const MINUTES_AT_FIRST = 15;

const RANGES = [
  { label: '5 min', minutes: 5 },
  { label: '15 min', minutes: 15 },
  { label: '2 h', minutes: 120 },
  { label: '24 h', minutes: 1_440 },
];

export const labelOf = (minutes: number): string =>
  RANGES.find((range) => range.minutes === minutes)?.label ?? `${String(minutes)} min`;

export function RangeControl({ minutes, onChange }: { minutes: number; onChange: (minutes: number) => void }) {
  return (
    <SegmentedControl
      size="xs"
      aria-label="How far back charts go"
      value={String(minutes)}
      onChange={(value) => onChange(Number(value))}
      data={RANGES.map((range) => ({ label: range.label, value: String(range.minutes) }))}
    />
  );
}
