/** Make a job of the query; what keeps it from being made is said beside the button. */
import { Button, Checkbox, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useId, type FormEvent } from 'react';
import { useNavigate } from 'react-router';
import { answered, api } from '../../api/client';
import { jobQuery } from '../../api/queries';
import type { Draft } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { createJob } from '../../recipes';
import classes from './CreateForm.module.css';

interface CreateFormProps {
  body: Draft;
  name: string;
  start: boolean;
  /** Why it cannot be created yet; none where it can. */
  blockers: string[];
  onName: (name: string) => void;
  onStart: (start: boolean) => void;
  onCreated: () => void;
}

export function CreateForm({ body, name, start, blockers, onName, onStart, onCreated }: CreateFormProps) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const reasons = useId();
  const isBlocked = blockers.length > 0;
  const create = useMutation({
    mutationFn: () => answered(api.POST('/api/v1/jobs', { body: { ...body, name: name.trim(), start } })),
    onSuccess: async (job) => {
      client.setQueryData(jobQuery(job.id).queryKey, job);
      onCreated();
      await navigate(`/jobs/${job.id}`);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!isBlocked) create.mutate();
  };
  return (
    <Panel
      title="Job"
      actions={<CopyAs recipe={createJob(name.trim() || 'NAME', body, start)} what="create this job" />}
    >
      <form className={classes.form} onSubmit={submit}>
        <TextInput
          className={classes.name}
          label="Name"
          required
          maxLength={100}
          value={name}
          onChange={(event) => onName(event.currentTarget.value)}
        />
        <Checkbox label="Start at once" checked={start} onChange={(event) => onStart(event.currentTarget.checked)} />
        <Button
          type="submit"
          size="sm"
          disabled={isBlocked}
          loading={create.isPending}
          {...(isBlocked && { 'aria-describedby': reasons })}
        >
          {start ? 'Create and start' : 'Create'}
        </Button>
      </form>
      {isBlocked && (
        <p id={reasons} className={classes.reasons}>
          Before it can be created: {blockers.join('; ')}.
        </p>
      )}
      {create.error !== null && <ProblemView error={create.error} />}
    </Panel>
  );
}
