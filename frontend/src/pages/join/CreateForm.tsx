/** Make a job of the query. */
import { Button, Checkbox, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { useNavigate } from 'react-router';
import { answered, api } from '../../api/client';
import { jobQuery } from '../../api/queries';
import type { Draft } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { createJob } from '../../recipes';
import classes from './CreateForm.module.css';

export function CreateForm({ draft, isValid }: { draft: Draft; isValid: boolean }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState('');
  const [start, setStart] = useState(true);
  const create = useMutation({
    mutationFn: () => answered(api.POST('/api/v1/jobs', { body: { ...draft, name: name.trim(), start } })),
    onSuccess: async (job) => {
      client.setQueryData(jobQuery(job.id).queryKey, job);
      await navigate(`/jobs/${job.id}`);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate();
  };
  return (
    <Panel
      title="Job"
      actions={<CopyAs recipe={createJob(name.trim() || 'NAME', draft, start)} what="create this job" />}
    >
      <form className={classes.form} onSubmit={submit}>
        <TextInput
          className={classes.name}
          label="Name"
          required
          maxLength={100}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Checkbox label="Start at once" checked={start} onChange={(event) => setStart(event.currentTarget.checked)} />
        <Button type="submit" size="sm" disabled={!isValid || name.trim() === ''} loading={create.isPending}>
          {start ? 'Create and start' : 'Create'}
        </Button>
      </form>
      {create.error !== null && <ProblemView error={create.error} />}
    </Panel>
  );
}
