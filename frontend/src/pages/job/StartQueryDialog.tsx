/** Start a query beside a job's own; what is wrong with it shows while it is typed. */
import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { diffQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { ProblemView } from '../../components/ProblemView';
import { squigglesOf } from '../../editor/offsets';
import { SqlEditor } from '../../editor/SqlEditor';
import { changeJob } from '../../recipes';
import { useColumns } from '../join/useColumns';
import { Verdict } from '../join/Verdict';
import { useApply } from './change/useApply';
import { furtherQueries } from './furtherQueries';
import { startOf, wrongIn } from './startQuery';

const TYPED_MS = 350;

export function StartQueryDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const [name, setName] = useState('');
  const [query, setQuery] = useState(job.query);
  const change = useMemo(() => startOf(name, query), [name, query]);
  const [seen] = useDebouncedValue(change, TYPED_MS);
  const look = useQuery({ ...diffQuery(job.id, job.version, seen), enabled: name.trim() !== '', retry: false });
  const apply = useApply(job.id, onClose);
  const isTaken = furtherQueries(job).some((other) => other.name === name.trim());
  const isSeen = seen === change;
  const refusal = isSeen ? look.error : null;
  const { ofName, ofQuery, elsewhere } = useMemo(() => wrongIn(name, refusal), [name, refusal]);
  const squiggles = useMemo(() => squigglesOf(query, ofQuery), [query, ofQuery]);
  const columns = useColumns(query, job.streams);
  const isRight = isSeen && look.isSuccess && !isTaken;
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
          error={isTaken ? 'there is a query of this name' : ofName}
          onChange={(event) => setName(event.currentTarget.value)}
          data-autofocus
        />
        <div>
          <Text size="sm" fw={500}>
            Query
          </Text>
          <SqlEditor label="Query" value={query} onChange={setQuery} squiggles={squiggles} columns={columns} />
          {name.trim() !== '' && (
            <Verdict
              diagnostics={
                isSeen && !look.isFetching
                  ? { valid: look.isSuccess, diagnostics: ofQuery, columns: [], summary: 'it fits what is stored' }
                  : undefined
              }
              isChecking={!isSeen || look.isFetching}
            />
          )}
        </div>
        {elsewhere && look.error !== null && <ProblemView error={look.error} />}
        {apply.error !== null && <ProblemView error={apply.error} />}
        <Group justify="flex-end">
          <CopyAs recipe={changeJob(job.name, change, job.version)} what="start this query" />
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button
            disabled={!isRight}
            loading={apply.isPending}
            onClick={() => apply.mutate({ change, version: job.version })}
          >
            {job.wanted === 'running' ? 'Start and restart the job' : 'Start'}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
