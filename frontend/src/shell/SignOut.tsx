import { Button } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { answered, api } from '../api/client';
import { meQuery } from '../api/queries';
import { forgetPages } from '../api/queryClient';
import classes from './SignOut.module.css';

export function SignOut({ name }: { name: string }) {
  const client = useQueryClient();
  const signOut = useMutation({
    mutationFn: () => answered(api.DELETE('/api/v1/sessions/current')),
    onSuccess: () => {
      forgetPages();
      return client.resetQueries({ queryKey: meQuery.queryKey });
    },
  });
  return (
    <Button
      variant="default"
      maw="100%"
      title={`Sign out ${name}`}
      loading={signOut.isPending}
      onClick={() => signOut.mutate()}
    >
      <span className={classes.name}>Sign out {name}</span>
    </Button>
  );
}
