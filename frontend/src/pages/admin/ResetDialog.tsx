import { Button, Group, Modal, PasswordInput, Stack, Text } from '@mantine/core';
import { useState, type FormEvent } from 'react';
import type { User } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { ProblemView } from '../../components/ProblemView';
import { changeUser } from '../../recipes';
import { formErrors } from '../../shell/places';
import { useChangeUser } from './useChangeUser';
import { UserName } from './UserName';

export function ResetDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const [password, setPassword] = useState('');
  const change = useChangeUser(user, onClose);
  const errors = formErrors(change.error, ['/password']);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    change.mutate({ password });
  };
  return (
    <Modal opened onClose={onClose} title={`New password of ${user.name}`}>
      <form onSubmit={submit}>
        <Stack>
          <Text size="sm">All their logins end, and the keys that they made. Tell them the password, and they change it themselves.</Text>
          <UserName name={user.name} />
          <PasswordInput
            label="New password"
            required
            autoComplete="new-password"
            data-autofocus
            value={password}
            error={errors.at['/password']}
            onChange={(event) => setPassword(event.currentTarget.value)}
          />
          {errors.rest !== null && <ProblemView error={errors.rest} />}
          <Group justify="flex-end">
            <CopyAs recipe={changeUser(user.name, { password })} what="give this user a new password" />
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" disabled={password === ''} loading={change.isPending}>
              Give
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
