/** Delete a stream's entry, and go back to the others. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from 'react-router';
import { answered, api } from '../../api/client';
import { streamsQuery } from '../../api/queries';
import type { Stream } from '../../api/types';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { deleteStream } from '../../recipes';

export function DeleteStreamDialog({ stream, onClose }: { stream: Stream; onClose: () => void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const remove = useMutation({
    mutationFn: () => answered(api.DELETE('/api/v1/streams/{id}', { params: { path: { id: stream.id } } })),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: streamsQuery.queryKey, exact: true });
      await navigate('/streams');
      client.removeQueries({ queryKey: [...streamsQuery.queryKey, stream.name] });
    },
  });
  return (
    <ConfirmDialog
      title={`Delete ${stream.name}?`}
      act="Delete"
      recipe={deleteStream(stream.name)}
      what="delete this stream"
      doing={remove}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      {stream.spec.source === 'push'
        ? 'Its entry is removed, and all rows that were posted into it. Nobody can bring them back.'
        : 'Its entry is removed. What it reads from stays as it is.'}
    </ConfirmDialog>
  );
}
