import { Button, Group, Modal, NumberInput, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answered, api } from '../../api/client';
import { jobQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { ProblemView } from '../../components/ProblemView';
import { rescaleJob } from '../../recipes';

const SLOTS_AT_FIRST = 2;

export function RescaleDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const client = useQueryClient();
  const [slots, setSlots] = useState(typeof job.run.slots === 'number' ? job.run.slots : SLOTS_AT_FIRST);
  const rescale = useMutation({
    mutationFn: () =>
      answered(api.POST('/api/v1/jobs/{id}/rescale', { params: { path: { id: job.id } }, body: { slots } })),
    onSuccess: (changed) => {
      client.setQueryData(jobQuery(job.id).queryKey, changed);
      onClose();
    },
  });
  return (
    <Modal opened onClose={onClose} title={`Rescale ${job.name}`}>
      <Stack>
        <Text size="sm">
          Units and their state stay; they are spread over another number of slots at a batch boundary.
        </Text>
        <NumberInput
          label="Slots"
          min={1}
          max={1024}
          value={slots}
          onChange={(value) => setSlots(Number(value) || 1)}
          data-autofocus
        />
        {rescale.error !== null && <ProblemView error={rescale.error} />}
        <Group justify="flex-end">
          <CopyAs recipe={rescaleJob(job.name, slots)} what="rescale this job" />
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button loading={rescale.isPending} onClick={() => rescale.mutate()}>
            Rescale
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
