/** Rows that are typed and posted, under a name that keeps them from being there twice. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answered, api } from '../../api/client';
import { sampleQuery } from '../../api/queries';
import type { Stream } from '../../api/types';
import { pushRows } from '../../recipes';
import { exampleRow, rowsOf } from './rows';

/** The rows as they were typed: read and written again, large numbers would lose digits. */
const post = (stream: string, text: string, batch: string) =>
  answered(
    api.POST('/api/v1/streams/{id}/rows', {
      params: { path: { id: stream }, query: batch === '' ? {} : { batch_id: batch } },
      headers: { 'Content-Type': 'application/x-ndjson' },
      // The description of the route has no body, which is text.
      body: text as never,
      bodySerializer: (body: unknown) => body as string,
    }),
  );

export function usePosting(stream: Stream) {
  const client = useQueryClient();
  const [example] = useState(() => exampleRow(stream.spec, new Date()));
  const [text, setText] = useState(() => JSON.stringify(example));
  const [batch, setBatch] = useState('');
  const [mistake, setMistake] = useState<string | null>(null);
  const posting = useMutation({
    mutationFn: () => post(stream.id, text, batch.trim()),
    onSuccess: () => client.invalidateQueries({ queryKey: sampleQuery(stream.name).queryKey }),
  });
  const typed = rowsOf(text);
  return {
    text,
    batch,
    /** What is wrong with the rows that were to be posted. */
    mistake,
    posting,
    recipe: pushRows(stream.name, typed.mistake === null ? typed.lines : [JSON.stringify(example)], batch.trim()),
    type: (next: string) => {
      setText(next);
      setMistake(null);
    },
    setBatch,
    send: () => {
      setMistake(typed.mistake);
      if (typed.mistake === null) posting.mutate();
    },
  };
}
