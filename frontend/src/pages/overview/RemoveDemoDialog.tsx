/** Remove a demo's job, and what it brought. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { demosQuery, jobsQuery, relationsQuery, streamsQuery } from '../../api/queries';
import { answered, api } from '../../api/client';
import type { Demo } from '../../api/types';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { removeDemo } from '../../recipes';

export function RemoveDemoDialog({ demo, onClose }: { demo: Demo; onClose: () => void }) {
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: () => answered(api.DELETE('/api/v1/demos/{name}', { params: { path: { name: demo.name } } })),
    onSuccess: async () => {
      const lists = [demosQuery, jobsQuery, streamsQuery, relationsQuery];
      await Promise.all(lists.map(({ queryKey }) => client.invalidateQueries({ queryKey, exact: true })));
      onClose();
    },
  });
  return (
    <ConfirmDialog
      title={`Remove ${demo.title}?`}
      act="Remove"
      recipe={removeDemo(demo.name)}
      what={`remove the demo ${demo.name}`}
      doing={remove}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      Its job is deleted with all its results, and so are its streams, relations and files that nobody else uses.
    </ConfirmDialog>
  );
}
