/** One's own password. */
import { Button, Group, PasswordInput, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { answered, api } from '../../api/client';
import type { Me } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { changePassword } from '../../recipes';
import { formErrors } from '../../shell/places';
import { UserName } from './UserName';

const NOTHING = { before: '', after: '', again: '' };

export function PasswordPanel({ me }: { me: Me }) {
  const [form, setForm] = useState(NOTHING);
  const change = useMutation({
    mutationFn: () => answered(api.PUT('/api/v1/users/me/password', { body: { old: form.before, new: form.after } })),
    onSuccess: () => setForm(NOTHING),
  });
  const errors = formErrors(change.error, ['/old', '/new']);
  const isMistyped = form.again !== '' && form.again !== form.after;
  const field = (name: keyof typeof NOTHING) => ({
    value: form[name],
    onChange: (event: { currentTarget: { value: string } }) => setForm({ ...form, [name]: event.currentTarget.value }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (form.again === form.after) change.mutate();
  };
  return (
    <Panel title="Password" actions={<CopyAs recipe={changePassword()} what="change my password" />}>
      <form onSubmit={submit}>
        <Stack gap="sm">
          <UserName name={me.name} />
          <PasswordInput
            label="Password until now"
            autoComplete="current-password"
            required
            error={errors.at['/old']}
            {...field('before')}
          />
          <PasswordInput
            label="New password"
            autoComplete="new-password"
            required
            error={errors.at['/new']}
            {...field('after')}
          />
          <PasswordInput
            label="New password again"
            autoComplete="new-password"
            required
            error={isMistyped && 'this is another one'}
            {...field('again')}
          />
          {errors.rest !== null && <ProblemView error={errors.rest} />}
          <Group justify="space-between" wrap="nowrap">
            <Text size="xs" c="dimmed" role="status">
              {change.isSuccess ? 'Changed. Your other logins have ended.' : 'Ends your other logins, and the keys that logins made.'}
            </Text>
            <Button
              type="submit"
              disabled={form.before === '' || form.after === '' || form.again !== form.after}
              loading={change.isPending}
            >
              Change
            </Button>
          </Group>
        </Stack>
      </form>
    </Panel>
  );
}
