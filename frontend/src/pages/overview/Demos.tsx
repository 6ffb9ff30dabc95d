/** Joins that can be started without any data. */
import { Anchor, Button } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useNavigate } from 'react-router';
import { answered, api } from '../../api/client';
import { jobQuery } from '../../api/queries';
import type { Demo } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { ProblemView } from '../../components/ProblemView';
import { startDemo } from '../../recipes';
import { mayChange } from '../../shell/mayChange';
import { useMay, useMe } from '../../shell/useMay';
import classes from './Demos.module.css';
import { RemoveDemoDialog } from './RemoveDemoDialog';

export function Demos({ demos }: { demos: Demo[] }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const me = useMe();
  const mayStart = useMay('operator');
  const [removed, setRemoved] = useState<Demo>();
  const start = useMutation({
    mutationFn: (name: string) => answered(api.POST('/api/v1/demos/{name}', { params: { path: { name } } })),
    onSuccess: async (job) => {
      client.setQueryData(jobQuery(job.id).queryKey, job);
      await navigate(`/jobs/${job.id}`);
    },
  });
  return (
    <>
      {removed !== undefined && <RemoveDemoDialog demo={removed} onClose={() => setRemoved(undefined)} />}
      {start.error !== null && <ProblemView error={start.error} />}
      <ul className={classes.demos}>
        {demos.map((demo) => (
          <li key={demo.name} className={classes.demo}>
            <h3 className={classes.title}>{demo.title}</h3>
            <p className={classes.text}>{demo.text}</p>
            <div className={classes.actions}>
              {demo.job_id !== null ? (
                <Anchor component={Link} to={`/jobs/${demo.job_id}`} fz="sm" aria-label={`Open its job: ${demo.title}`}>
                  Open its job
                </Anchor>
              ) : (
                mayStart && (
                  <Button
                    variant="default"
                    loading={start.isPending && start.variables === demo.name}
                    aria-label={`Start: ${demo.title}`}
                    onClick={() => start.mutate(demo.name)}
                  >
                    Start
                  </Button>
                )
              )}
              {demo.job_id !== null && mayChange(me, demo) && (
                <Button
                  size="compact-sm"
                  variant="subtle"
                  aria-label={`Remove: ${demo.title}`}
                  onClick={() => setRemoved(demo)}
                >
                  Remove
                </Button>
              )}
              <CopyAs recipe={startDemo(demo.name)} what={`start the demo ${demo.name}`} />
            </div>
          </li>
        ))}
      </ul>
    </>
  );
}
