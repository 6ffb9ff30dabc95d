/** For who is not signed in, where the platform asks for it. */
import { Button, PasswordInput, Stack, TextInput } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { answered, api } from '../api/client';
import { meQuery } from '../api/queries';
import { forgetPages } from '../api/queryClient';
import { ProblemView } from '../components/ProblemView';
import { live } from '../live/shared';
import classes from './SignIn.module.css';

export function SignIn() {
  useDocumentTitle('Sign in · StreamJoin');
  const client = useQueryClient();
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const signIn = useMutation({
    mutationFn: () => answered(api.POST('/api/v1/sessions', { body: { name, password } })),
    onSuccess: async (me) => {
      // An answer to who was there before would end the login on this page.
      await client.cancelQueries({ queryKey: meQuery.queryKey });
      forgetPages();
      client.setQueryData(meQuery.queryKey, me);
      live.retry();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    signIn.mutate();
  };
  return (
    <main className={classes.page}>
      <form className={classes.card} onSubmit={submit}>
        <h1 className={classes.title}>
          <img src="./icon.svg" alt="" width={26} height={26} />
          Sign in to StreamJoin
        </h1>
        <Stack gap="sm">
          <TextInput
            label="Name"
            autoComplete="username"
            required
            autoFocus
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <PasswordInput
            label="Password"
            autoComplete="current-password"
            required
            value={password}
            onChange={(event) => setPassword(event.currentTarget.value)}
          />
          {signIn.error !== null && <ProblemView error={signIn.error} />}
          <Button type="submit" size="sm" loading={signIn.isPending}>
            Sign in
          </Button>
        </Stack>
      </form>
    </main>
  );
}
