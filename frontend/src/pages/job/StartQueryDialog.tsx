/** Start a query beside a job's own; what is wrong with it shows while it is typed. */
import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { Job } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { ProblemView } from '../../components/ProblemView';
import { SqlEditor } from '../../editor/SqlEditor';
import { changeJob } from '../../recipes';
import { useColumns } from '../join/useColumns';
import { Verdict } from '../join/Verdict';
import { useApply } from './change/useApply';
import { useStartQuery } from './useStartQuery';

export function StartQueryDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const [name, setName] = useState('');
  const [query, setQuery] = useState(job.query);
  const start = useStartQuery(job, name, query);
  const apply = useApply(job.id, onClose);
  const columns = useColumns(query, job.streams);
  return (
    <Modal opened onClose={onClose} title={`Start a query beside that of ${job.name}`} size="lg">
      <Stack>
        <Text size="sm">
          It is joined over the tuples that the job stores, and begins with the pairs whose later tuple comes after its
          start. {job.wanted === 'running' ? 'The job restarts after the batch that runs.' : 'The next start has it.'}
        </Text>
        <TextInput
          label="Name"
          description={`its results are asked and followed as ${job.name}:${name.trim() || 'name'}`}
          value={name}
          error={start.wrongName}
          onChange={(event) => setName(event.currentTarget.value)}
          data-autofocus
        />
        <div>
          <Text size="sm" fw={500}>
            Query
          </Text>
          <SqlEditor label="Query" value={query} onChange={setQuery} squiggles={start.squiggles} columns={columns} />
          {name.trim() !== '' && (
            <Verdict diagnostics={start.diagnostics} isChecking={start.isLooking} />
          )}
        </div>
        {start.refusal !== null && <ProblemView error={start.refusal} />}
        {apply.error !== null && <ProblemView error={apply.error} />}
        <Group justify="flex-end">
          <CopyAs recipe={changeJob(job.name, start.change, job.version)} what="start this query" />
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button
            disabled={!start.isRight}
            loading={apply.isPending}
            onClick={() => apply.mutate({ change: start.change, version: job.version })}
          >
            {job.wanted === 'running' ? 'Start and restart the job' : 'Start'}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
