/** Begin with a query over two of the registered streams, whose columns are looked at for it. */
import { Button, NativeSelect } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { sampleQuery } from '../../api/queries';
import type { Stream } from '../../api/types';
import classes from './Templates.module.css';
import { TEMPLATES, type Filled, type Known } from './templates';

function useKnown(stream: Stream | undefined): Known | null {
  const sample = useQuery({ ...sampleQuery(stream?.name ?? ''), staleTime: Infinity, enabled: stream !== undefined });
  if (stream === undefined || sample.data === undefined) return null;
  return { name: stream.name, columns: sample.data.columns, time: String(stream.spec.time) };
}

interface TemplatesProps {
  /** Newest first; one at least. */
  streams: Stream[];
  onFill: (filled: Filled) => void;
}

export function Templates({ streams, onFill }: TemplatesProps) {
  const [chosen, setChosen] = useState<{ r?: string; s?: string }>({});
  const names = streams.map(({ name }) => name);
  const find = (name: string | undefined) => streams.find((stream) => stream.name === name);
  const rStream = find(chosen.r) ?? streams[1] ?? streams[0];
  const sStream = find(chosen.s) ?? streams[0];
  const r = useKnown(rStream);
  const s = useKnown(sStream);
  return (
    <div className={classes.templates}>
      <span>Begin with</span>
      {TEMPLATES.map(({ title, note, fill }) => {
        const filled = r === null || s === null ? null : fill(r, s);
        const lacks = r === null || s === null ? 'their columns are not known' : 'they have no columns for it';
        return (
          <Button
            key={title}
            variant="default"
            title={filled === null ? `${note}; ${lacks}` : note}
            disabled={filled === null}
            onClick={() => filled !== null && onFill(filled)}
          >
            {title}
          </Button>
        );
      })}
      <span>of</span>
      <NativeSelect
        size="xs"
        aria-label="First stream"
        data={names}
        value={rStream?.name ?? ''}
        onChange={({ currentTarget }) => setChosen({ ...chosen, r: currentTarget.value })}
      />
      <span>and</span>
      <NativeSelect
        size="xs"
        aria-label="Second stream"
        data={names}
        value={sStream?.name ?? ''}
        onChange={({ currentTarget }) => setChosen({ ...chosen, s: currentTarget.value })}
      />
    </div>
  );
}
