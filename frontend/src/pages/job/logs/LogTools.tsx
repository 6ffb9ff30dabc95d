/** What is shown of a log: which one, from which level on, of which generation, and with which text. */
import { NativeSelect, SegmentedControl, TextInput } from '@mantine/core';
import type { Level } from './lines';
import classes from './LogsPanel.module.css';

const LOGS = { driver: 'Driver', spark: 'Spark' } as const;
export type Which = keyof typeof LOGS;

export const LEVELS: { value: Level; label: string }[] = [
  { value: 'debug', label: 'All levels' },
  { value: 'warning', label: 'Warnings and errors' },
  { value: 'error', label: 'Errors' },
];

interface LogToolsProps {
  which: Which;
  level: Level;
  generation: number | null;
  /** Those that wrote lines, newest first. */
  generations: number[];
  text: string;
  /** Null is what is there unless asked for. */
  onChange: (name: 'log' | 'level' | 'generation', value: string | null) => void;
  onText: (text: string) => void;
}

export function LogTools({ which, level, generation, generations, text, onChange, onText }: LogToolsProps) {
  return (
    <div className={classes.tools}>
      <SegmentedControl
        size="xs"
        aria-label="Which log"
        value={which}
        onChange={(value) => onChange('log', value === 'driver' ? null : value)}
        data={Object.entries(LOGS).map(([value, label]) => ({ value, label }))}
      />
      <NativeSelect
        size="xs"
        aria-label="Level"
        value={level}
        data={LEVELS}
        onChange={(event) => onChange('level', event.currentTarget.value === 'debug' ? null : event.currentTarget.value)}
      />
      {which === 'driver' && (
        <NativeSelect
          size="xs"
          aria-label="Generation"
          value={generation === null ? '' : String(generation)}
          data={[
            { value: '', label: 'All generations' },
            ...[...new Set([...(generation === null ? [] : [generation]), ...generations])].map((one) => ({
              value: String(one),
              label: `Generation ${String(one)}`,
            })),
          ]}
          onChange={(event) => onChange('generation', event.currentTarget.value || null)}
        />
      )}
      <TextInput
        className={classes.text}
        size="xs"
        aria-label="Lines with this text"
        placeholder="with this text"
        value={text}
        onChange={(event) => onText(event.currentTarget.value)}
      />
    </div>
  );
}
