/** The query and its window, with the mistakes in it. */
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { streamsQuery } from '../../../api/queries';
import type { Diagnostics, Place } from '../../../api/types';
import { Panel } from '../../../components/Panel';
import { SqlEditor } from '../../../editor/SqlEditor';
import { useSquiggles } from '../../../editor/useSquiggles';
import { useColumns } from '../../join/useColumns';
import { Verdict } from '../../join/Verdict';
import { WindowField } from './WindowField';

interface QueryFieldsProps {
  query: string;
  /** The query that was looked at last. */
  seen: string;
  diagnostics: Diagnostics | undefined;
  mistakes: Place[];
  isLooking: boolean;
  onChange: (query: string) => void;
}

export function QueryFields({ query, seen, diagnostics, mistakes, isLooking, onChange }: QueryFieldsProps) {
  const streams = useQuery(streamsQuery);
  const names = useMemo(() => streams.data?.data.map((stream) => stream.name) ?? [], [streams.data]);
  const columns = useColumns(seen, names);
  const squiggles = useSquiggles(query, seen === query ? mistakes : []);
  return (
    <Panel title="Query" note="mistakes are underlined while you type; Ctrl-Space completes" flush>
      <SqlEditor
        label="Query"
        value={query}
        onChange={(text) => text !== query && onChange(text)}
        squiggles={squiggles}
        columns={columns}
      />
      <Verdict diagnostics={diagnostics && { ...diagnostics, diagnostics: mistakes }} isChecking={isLooking} />
      <WindowField query={query} onChange={onChange} />
    </Panel>
  );
}
